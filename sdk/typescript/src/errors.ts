// What goes wrong, by class. Every error has code, status, field, rule, layer and requestId where the server said them.
//
//   try { await sandbox.commands.run('sudo reboot') }
//   catch (error) { if (error instanceof PolicyError) console.log(error.rule, error.message) }

export interface ErrorDetails {
  code?: string
  status?: number
  field?: string
  rule?: string
  layer?: string
  requestId?: string
  /** Seconds after which the server takes the request. */
  retryAfter?: number
  cause?: unknown
}

/** Anything that cove, or the way to cove, refused or could not do. */
export class CoveError extends Error {
  readonly code?: string
  readonly status?: number
  readonly field?: string
  readonly rule?: string
  readonly layer?: string
  readonly requestId?: string
  readonly retryAfter?: number

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = new.target.name
    this.code = details.code
    this.status = details.status
    this.field = details.field
    this.rule = details.rule
    this.layer = details.layer
    this.requestId = details.requestId
    this.retryAfter = details.retryAfter
  }
}

/** An address, a key or an option that cannot be used; nothing was sent. */
export class ConfigurationError extends CoveError {}
/** The server could not be reached, or the connection broke before the answer. */
export class ConnectionFailedError extends CoveError {}
/** The request took longer than its timeout. */
export class RequestTimeoutError extends CoveError {}
/** The server, or something between, sent what the protocol does not allow, or an answer that was cut. */
export class ProtocolError extends CoveError {}
/** The server answered with an error. */
export class ApiError extends CoveError {}
/** 400, 413, 415, 416, 422: a field has an invalid value; `field` names it. */
export class InvalidRequestError extends ApiError {}
/** 401: no key, or an invalid one. */
export class AuthenticationError extends ApiError {}
/** 403: the key, the permissions inside or a rule do not allow it. */
export class ForbiddenError extends ApiError {}
/** 403 of the policy; `rule` names the rule. */
export class PolicyError extends ForbiddenError {}
/** 404. */
export class NotFoundError extends ApiError {}
/** The sandbox does not exist, is gone, or belongs to another tenant. */
export class SandboxNotFoundError extends NotFoundError {}
/** 409: the name is in use, or the state does not allow it. */
export class ConflictError extends ApiError {}
/** 429: too many requests, sandboxes or processes; `retryAfter` says when to try again, if the server knows. */
export class TooManyError extends ApiError {}
/** 429 of the tenant's quota. */
export class QuotaError extends TooManyError {}
/** 5xx: the server or the host could not do it. */
export class ServerError extends ApiError {}
/** 502, 503, 504: something that the server needs does not answer. */
export class UnavailableError extends ServerError {}
/** 507: no bytes or inodes are left. */
export class DiskFullError extends ServerError {}
/** 501: this host, template or server cannot do it. */
export class UnsupportedError extends ServerError {}

type ErrorClass = new (message: string, details?: ErrorDetails) => ApiError

const byStatus: Record<number, ErrorClass> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  416: InvalidRequestError,
  422: InvalidRequestError,
  429: TooManyError,
  501: UnsupportedError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
  507: DiskFullError,
}

const byCode: Record<string, ErrorClass> = { sandbox_not_found: SandboxNotFoundError }
const byLayer: Record<string, [number, ErrorClass]> = { policy: [403, PolicyError], quota: [429, QuotaError] }

interface ErrorBody {
  code?: unknown
  message?: unknown
  field?: unknown
  rule?: unknown
  layer?: unknown
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value ? value : undefined)

/** The error that an answer with this status and body stands for. */
export function apiError(status: number, body: unknown, about: { requestId?: string; retryAfter?: number } = {}): ApiError {
  const outer = (body && typeof body === 'object' ? body : {}) as { error?: unknown; message?: unknown; code?: unknown }
  // The native API says {error: {…}}; the dialect of the code interpreter says {code, message}.
  const error = (outer.error && typeof outer.error === 'object' ? outer.error : outer) as ErrorBody
  const code = text(error.code)
  const layer = text(error.layer)
  const special = layer ? byLayer[layer] : undefined
  const kind =
    (code ? byCode[code] : undefined) ??
    (special && special[0] === status ? special[1] : undefined) ??
    byStatus[status] ??
    (status >= 500 ? ServerError : ApiError)
  return new kind(text(error.message) ?? (status ? `the server answered ${status}` : 'the server ended the stream with an error'), {
    code,
    status: status || undefined,
    field: text(error.field),
    rule: text(error.rule),
    layer,
    ...about,
  })
}
