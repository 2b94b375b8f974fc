/** The requests of `sluice login`, `token`, `logout` and `whoami`: device flow, renewal, revocation, use. */
import { numberOf, objectOf, stringOf, type JsonObject, parsedJson } from '../../base/json.js'
import { packageVersion } from '../../config/package-file.js'
import type { LoginEntry } from './login-file.js'

const ANSWER_MS = 10_000
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/** A client that calls `sluice token` keeps what it prints for five minutes. */
const KEPT_MS = 360_000

/** The gateway refused, in its words, or did not answer. */
export class LoginError extends Error {
  /** As OAuth names it; null if there was no answer. */
  readonly code: string | null

  constructor(message: string, code: string | null = null) {
    super(message)
    this.code = code
  }
}

/** A sign-in that waits for its user. */
interface WaitingLogin {
  readonly deviceCode: string
  readonly userCode: string
  /** The page, with the code. */
  readonly page: string
  readonly expiresSeconds: number
  readonly intervalSeconds: number
}

interface Endpoints {
  readonly device: string
  readonly token: string
  readonly revocation: string
}

async function endpointsOf(url: string): Promise<Endpoints> {
  const { status, json } = await send(`${url}/.well-known/oauth-authorization-server`)
  if (status === 404) throw new LoginError(`${url} has no sign-in of programs: login.enabled is off there`)
  const endpoint = (name: string): string => {
    const text = stringOf(json[name]) ?? ''
    // Tokens go to no other server than the one that the user named.
    if (!URL.canParse(text) || new URL(text).origin !== url) {
      throw new LoginError(
        `${url} names ${name} at another address: use dashboard.public_url of the gateway as URL`,
      )
    }
    return text
  }
  return {
    device: endpoint('device_authorization_endpoint'),
    token: endpoint('token_endpoint'),
    revocation: endpoint('revocation_endpoint'),
  }
}

/** Begins a sign-in. Rejects with `LoginError`. */
export async function beginLogin(url: string): Promise<WaitingLogin> {
  const { device } = await endpointsOf(url)
  const { json } = await sendForm(device, { surface: 'sluice' })
  const deviceCode = stringOf(json['device_code'])
  const userCode = stringOf(json['user_code'])
  const page = stringOf(json['verification_uri_complete'])
  if (deviceCode === undefined || userCode === undefined || page === undefined) {
    throw new LoginError(`${url} answers in another form`)
  }
  return {
    ...{ deviceCode, userCode, page },
    expiresSeconds: numberOf(json['expires_in']) ?? 600,
    intervalSeconds: numberOf(json['interval']) ?? 5,
  }
}

/** Waits until the user has approved the sign-in. Rejects with `LoginError`. */
export async function awaitApproval(url: string, waiting: WaitingLogin): Promise<LoginEntry> {
  const { token } = await endpointsOf(url)
  const untilMs = Date.now() + waiting.expiresSeconds * 1_000
  let { intervalSeconds } = waiting
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, intervalSeconds * 1_000))
    try {
      const form = { grant_type: DEVICE_GRANT, device_code: waiting.deviceCode }
      return entryOf((await sendForm(token, form)).json)
    } catch (error) {
      const { code } = error instanceof LoginError ? error : { code: 'bug' }
      if (code === 'slow_down') intervalSeconds += 5
      // Without an answer it goes on until the code expires.
      else if (code !== 'authorization_pending' && code !== null) throw error
      if (Date.now() > untilMs) throw new LoginError('the code has expired: run sluice login again')
    }
  }
}

/** Replaces the tokens. Rejects with `LoginError`. */
export async function renewTokens(url: string, { refreshToken }: LoginEntry): Promise<LoginEntry> {
  const { token } = await endpointsOf(url)
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken }
  return entryOf((await sendForm(token, form)).json)
}

/** Ends the sign-in at the gateway. Rejects with `LoginError`. */
export async function revokeTokens(url: string, { refreshToken }: LoginEntry): Promise<void> {
  const { revocation } = await endpointsOf(url)
  await sendForm(revocation, { token: refreshToken, token_type_hint: 'refresh_token' })
}

/** What the programs of the token's user used, and what is left. Rejects with `LoginError`. */
export async function readOwnUsage(url: string, token: string): Promise<JsonObject> {
  const { status, json } = await send(`${url}/auth/usage`, { headers: { authorization: `Bearer ${token}` } })
  if (status === 200) return json
  if (status === 404) throw new LoginError(`${url} has no usage of programs: it is an older version`)
  const message = stringOf(objectOf(json['error'])['message']) ?? `status ${String(status)}`
  throw new LoginError(`${url}: ${message}`, status >= 500 ? null : String(status))
}

function entryOf(json: JsonObject): LoginEntry {
  const accessToken = stringOf(json['access_token'])
  const refreshToken = stringOf(json['refresh_token'])
  if (accessToken === undefined || refreshToken === undefined) {
    throw new LoginError('the gateway answers in another form')
  }
  const lifeMs = (numberOf(json['expires_in']) ?? 0) * 1_000
  const expiresAtMs = Date.now() + lifeMs
  const renewAtMs = expiresAtMs - Math.min(KEPT_MS, lifeMs / 2)
  return { accessToken, refreshToken, email: stringOf(json['email']) ?? '', expiresAtMs, renewAtMs }
}

interface Answer {
  readonly status: number
  readonly json: JsonObject
}

async function sendForm(address: string, form: Readonly<Record<string, string>>): Promise<Answer> {
  const answer = await send(address, { method: 'POST', body: new URLSearchParams(form) })
  if (answer.status === 200) return answer
  const code = stringOf(answer.json['error']) ?? `status ${String(answer.status)}`
  // A gateway that is overloaded, or cannot reach its store, may answer in a moment.
  const isAway = answer.status >= 500
  const why = stringOf(answer.json['error_description']) ?? code
  throw new LoginError(`${new URL(address).origin}: ${why}`, isAway ? null : code)
}

async function send(
  address: string,
  init: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Answer> {
  let reply: Response
  let text: string
  try {
    reply = await fetch(address, {
      ...init,
      redirect: 'error',
      headers: { ...init.headers, 'user-agent': `sluice/${packageVersion()}` },
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    text = await reply.text()
  } catch {
    throw new LoginError(`${new URL(address).origin} does not answer`)
  }
  return { status: reply.status, json: objectOf(parsedJson(text)) }
}
