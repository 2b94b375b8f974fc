/**
 * Codes of errors in Google's APIs: the number of gRPC, its name, and the status of HTTP.
 *
 * Source: google.rpc.Code (googleapis, google/rpc/code.proto).
 */

/** One code. */
interface GoogleCode {
  readonly code: number
  readonly name: string
  readonly status: number
}

const UNKNOWN: GoogleCode = { code: 2, name: 'UNKNOWN', status: 500 }

const CODES: readonly GoogleCode[] = [
  { code: 1, name: 'CANCELLED', status: 499 },
  UNKNOWN,
  { code: 3, name: 'INVALID_ARGUMENT', status: 400 },
  { code: 4, name: 'DEADLINE_EXCEEDED', status: 504 },
  { code: 5, name: 'NOT_FOUND', status: 404 },
  { code: 7, name: 'PERMISSION_DENIED', status: 403 },
  { code: 8, name: 'RESOURCE_EXHAUSTED', status: 429 },
  { code: 9, name: 'FAILED_PRECONDITION', status: 400 },
  { code: 12, name: 'UNIMPLEMENTED', status: 501 },
  { code: 13, name: 'INTERNAL', status: 500 },
  { code: 14, name: 'UNAVAILABLE', status: 503 },
  { code: 16, name: 'UNAUTHENTICATED', status: 401 },
]

/** The code with a number, which some replies give as the status of HTTP. */
export function codeNumbered(number: number): GoogleCode {
  const found = CODES.find(({ code }) => code === number) ?? CODES.find(({ status }) => status === number)
  if (found !== undefined) return found
  return number >= 400 && number < 600 ? { ...UNKNOWN, status: number } : UNKNOWN
}

/** The code with a name. */
export function codeNamed(name: string): GoogleCode {
  return CODES.find((each) => each.name === name) ?? UNKNOWN
}
