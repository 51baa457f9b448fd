// A question, code for it, the code's error back to who wrote it, a picture.
import { writeFileSync } from 'node:fs'
import { Sandbox } from '@e2b/code-interpreter'

const withLibrary = `
import matplotlib.pyplot as plt
months, sales = ['Jan', 'Feb', 'Mar', 'Apr'], [12, 19, 7, 15]
plt.bar(months, sales)
plt.title('Sales')
plt.ylabel('thousand')
plt.show()
`

const withoutLibrary = `
import struct, zlib

sales, width, height = [12, 19, 7, 15], 320, 200
rows = [bytearray(b'\\xff' * width * 3) for _ in range(height)]
for i, value in enumerate(sales):
    left, top = 30 + i * 70, height - value * 9
    for y in range(top, height - 10):
        rows[y][left * 3:(left + 50) * 3] = b'\\x1f\\x77\\xb4' * 50

def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

class Picture:
    def _repr_png_(self):
        return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))
                + chunk(b'IDAT', zlib.compress(b''.join(b'\\0' + bytes(row) for row in rows))) + chunk(b'IEND', b''))

Picture()
`

// In the place of a language model: the first answer, and what it says to an error.
function model(conversation) {
  const last = conversation.at(-1)
  return last.role === 'error' && last.text.includes('No module named') ? withoutLibrary : withLibrary
}

const sandbox = await Sandbox.create()
const conversation = [{ role: 'user', text: 'Draw our sales of January to April.' }]
let picture

for (let turn = 1; turn <= 3 && !picture; turn++) {
  const code = model(conversation)
  console.log(`turn ${turn}: ${code.trim().split('\n').length} lines of Python`)
  const { results, error } = await sandbox.runCode(code)
  if (error) {
    console.log(`  ${error.name}: ${error.value}`)
    conversation.push({ role: 'code', text: code }, { role: 'error', text: error.traceback })
  }
  picture = results.find((result) => result.png)
}
await sandbox.kill()

if (!picture) throw new Error('no picture after three turns')
writeFileSync('chart.png', Buffer.from(picture.png, 'base64'))
console.log(`chart.png: ${Buffer.from(picture.png, 'base64').length} bytes`)
if (picture.chart) console.log(`its numbers: ${JSON.stringify(picture.chart.elements)}`)
