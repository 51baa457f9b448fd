"""Makes images for tests: layers from Python, as docker-save archives, OCI archives and OCI layouts.

    python3 images.py KIND OUT [docker|oci|layout] [none|gzip|zstd]

A layer is a list of entries for tarfile: entry() makes one. KINDS has the images."""
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile


def sha(data):
    return hashlib.sha256(data).hexdigest()


def entry(name, kind="file", data=b"", mode=None, uid=0, gid=0, target="", mtime=1700000000, pax=None, major=0, minor=0):
    types = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE,
             "fifo": tarfile.FIFOTYPE, "char": tarfile.CHRTYPE, "block": tarfile.BLKTYPE}
    info = tarfile.TarInfo(name)
    info.type = types[kind]
    info.size = len(data) if kind == "file" else 0
    info.mode = mode if mode is not None else (0o755 if kind == "dir" else 0o644)
    info.uid, info.gid, info.mtime, info.linkname = uid, gid, mtime, target
    info.devmajor, info.devminor = major, minor
    info.pax_headers = pax or {}
    return info, data


def layer(entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return out.getvalue()


def pack(data, how):
    if how == "gzip":
        return gzip.compress(data, 6, mtime=0)
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return data


MEDIA = {"none": "application/vnd.oci.image.layer.v1.tar", "gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
         "zstd": "application/vnd.oci.image.layer.v1.tar+zstd"}


class Image:
    """Layers are bytes of tar files, the lowest first."""

    def __init__(self, layers, how="gzip", architecture="amd64", **run):
        self.plain = layers
        self.packed = [pack(data, how) for data in layers]
        self.how = how
        config = {"architecture": architecture, "os": "linux", "config": run,
                  "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(data) for data in layers]}}
        self.set_config(config)

    def set_config(self, config):
        self.config = json.dumps(config).encode()

    def manifest(self):
        return json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:" + sha(self.config),
                       "size": len(self.config)},
            "layers": [{"mediaType": MEDIA[self.how], "digest": "sha256:" + sha(data), "size": len(data)}
                       for data in self.packed]}).encode()

    def files(self, tag="latest"):
        """The files of an OCI layout: name -> content."""
        manifest = self.manifest()
        index = {"schemaVersion": 2, "manifests": [
            {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:" + sha(manifest),
             "size": len(manifest), "annotations": {"org.opencontainers.image.ref.name": tag}}]}
        files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
        for data in [manifest, self.config] + self.packed:
            files["blobs/sha256/" + sha(data)] = data
        return files

    def saved(self, tag="test:latest"):
        """The files of docker save, as it was before it wrote layouts."""
        name = sha(self.config) + ".json"
        files = {name: self.config}
        layers = []
        for i, data in enumerate(self.plain):
            layers.append("%s%d/layer.tar" % (sha(data)[:12], i))
            files[layers[-1]] = data
        files["manifest.json"] = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": layers}]).encode()
        return files


def write_archive(path, files):
    with open(path, "wb") as out:
        out.write(layer([entry(name, data=data) for name, data in files.items()]))


def write_layout(path, files):
    for name, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
        with open(os.path.join(path, name), "wb") as out:
            out.write(data)


def write(image, path, form):
    if form == "layout":
        write_layout(path, image.files())
    else:
        write_archive(path, image.files() if form == "oci" else image.saved())


def program(name):
    with open(os.path.join(os.environ["BUILD"], "helpers", name), "rb") as f:
        return f.read()
