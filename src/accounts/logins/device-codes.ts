/**
 * The device flow (RFC 8628): a program gets a device code, which it polls with, and a user code, which its
 * user enters in the browser. Both work for ten minutes, and a device code yields tokens once.
 */
import { randomInt } from 'node:crypto'
import { isObject } from '../../base/json.js'
import type { SignInToken, SignInTokens } from '../../store/sign-in-tokens.js'
import { digestOf, randomBase62 } from '../key-secret.js'
import type { ApprovingSession } from './login-records.js'

/** Lifetime of the codes. */
export const DEVICE_CODE_SECONDS = 600
/** Least time between two questions of a program, in seconds, and what each early one adds to it. */
export const POLL_SECONDS = 5
/** Expired codes are known for this time, so that their programs learn that they have expired. */
const KNOWN_MS = 3_600_000
/** Without vowels, so that codes spell no words (RFC 8628, 6.1). */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const USER_CODE_LENGTH = 8
const USER_CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/

/** Who requests a sign-in. */
interface Asker {
  /** By its user agent. */
  readonly program: string
  /** The client's address. */
  readonly address: string
}

/** A sign-in that waits for its user, or was decided. */
interface DeviceRecord extends Asker {
  /** When the codes expire, in ms since 1970. */
  readonly untilMs: number
  readonly pollSeconds: number
  /** Null: the program has not asked. */
  readonly polledAtMs: number | null
  /** The user and account that approved; null: waits, or denied. */
  readonly userId: string | null
  readonly accountId: string | null
  /** The session in which the user approved. */
  readonly session: ApprovingSession
  readonly isDenied: boolean
}

/** Who approves a program, and for what. */
interface Approval {
  readonly userId: string
  readonly accountId: string
  readonly session: ApprovingSession
}

/** New codes. */
interface DeviceCodes {
  readonly deviceCode: string
  /** `XXXX-XXXX`. */
  readonly userCode: string
}

/** What the page shows of a sign-in that waits. */
export interface WaitingDevice extends Asker {
  /** As in the store. */
  readonly id: string
  readonly untilMs: number
}

/** What a program gets for its device code. */
export type DeviceAnswer =
  | ({ readonly is: 'approved'; readonly program: string; readonly approvalId: string } & Approval)
  | { readonly is: 'authorization_pending' | 'slow_down' | 'access_denied' | 'expired_token' | 'unknown' }

/** Issues codes. */
export async function issueDeviceCodes(
  tokens: SignInTokens,
  asker: Asker,
  nowMs: number,
): Promise<DeviceCodes> {
  const deviceCode = randomBase62(43)
  const id = digestOf(deviceCode)
  const untilMs = nowMs + DEVICE_CODE_SECONDS * 1_000
  const record: DeviceRecord = {
    ...{ ...asker, untilMs, pollSeconds: POLL_SECONDS, polledAtMs: null },
    ...{ userId: null, accountId: null, session: { id: '', endsAtMs: 0 }, isDenied: false },
  }
  const common = { accountId: '', expiresAtMs: untilMs + KNOWN_MS }
  await tokens.add({ id, kind: 'device_code', ...common, text: JSON.stringify(record) })
  for (;;) {
    const userCode = newUserCode()
    const pointer = { id: userCodeId(userCode), kind: 'user_code', accountId: '', text: id } as const
    // A code in use is replaced by another one.
    if (await tokens.add({ ...pointer, expiresAtMs: untilMs })) {
      return { deviceCode, userCode: `${userCode.slice(0, 4)}-${userCode.slice(4)}` }
    }
  }
}

/** The sign-in with this user code, in any case and with or without the hyphen; null if none waits. */
export async function waitingDevice(
  tokens: SignInTokens,
  userCode: string,
  nowMs: number,
): Promise<WaitingDevice | null> {
  const code = userCode.toUpperCase().replaceAll(/[\s-]/g, '')
  if (!USER_CODE.test(code)) return null
  const pointer = await tokens.find('user_code', userCodeId(code), nowMs)
  const found = pointer === null ? null : await tokens.find('device_code', pointer.text, nowMs)
  if (found === null) return null
  const record = readDevice(found)
  if (!isWaiting(record, nowMs)) return null
  const { program, address, untilMs } = record
  return { id: found.id, program, address, untilMs }
}

/**
 * Approves a sign-in for the account, or denies it (null). False if it does not wait any more. The user has a
 * record of the approval until the program has its tokens, so that it ends with what the user's programs do.
 */
export async function decideDevice(
  tokens: SignInTokens,
  id: string,
  by: Approval | null,
  nowMs: number,
): Promise<boolean> {
  const approvalId = approvalIdOf(id)
  if (by !== null) {
    const expiresAtMs = nowMs + DEVICE_CODE_SECONDS * 1_000
    await tokens.add({ id: approvalId, kind: 'device_code', accountId: by.userId, expiresAtMs, text: '' })
  }
  const decided = await tokens.change(
    'device_code',
    id,
    (token) => {
      const record = readDevice(token)
      if (!isWaiting(record, nowMs)) return null
      return { text: JSON.stringify({ ...record, ...(by ?? { isDenied: true }) }) }
    },
    nowMs,
  )
  return decided !== null
}

function approvalIdOf(deviceId: string): string {
  return digestOf(`approval ${deviceId}`)
}

/** The answer to a program that polls with its device code; one that is approved is used up. */
export async function pollDevice(
  tokens: SignInTokens,
  deviceCode: string,
  nowMs: number,
): Promise<DeviceAnswer> {
  const id = digestOf(deviceCode)
  const polled = await tokens.change('device_code', id, (token) => afterPoll(token, nowMs), nowMs)
  if (polled !== null) {
    const { polledAtMs, pollSeconds } = readDevice(polled)
    return { is: isEarly(polledAtMs, pollSeconds, nowMs) ? 'slow_down' : 'authorization_pending' }
  }
  const found = await tokens.find('device_code', id, nowMs)
  if (found === null) return { is: 'unknown' }
  const { isDenied, untilMs, userId, accountId, session, program } = readDevice(found)
  if (isDenied) return { is: 'access_denied' }
  if (untilMs <= nowMs) return { is: 'expired_token' }
  // It was approved: of concurrent questions, one gets the tokens.
  if (userId === null || accountId === null || (await tokens.take('device_code', id, nowMs)) === null) {
    return { is: 'unknown' }
  }
  return { is: 'approved', approvalId: approvalIdOf(id), userId, accountId, session, program }
}

/** Null for a sign-in that does not wait. */
function afterPoll(token: SignInToken, nowMs: number): { readonly text: string } | null {
  const record = readDevice(token)
  if (!isWaiting(record, nowMs)) return null
  const { polledAtMs, pollSeconds } = record
  const more = isEarly(polledAtMs, pollSeconds, nowMs) ? POLL_SECONDS : 0
  return { text: JSON.stringify({ ...record, polledAtMs: nowMs, pollSeconds: pollSeconds + more }) }
}

function isEarly(polledAtMs: number | null, pollSeconds: number, nowMs: number): boolean {
  return polledAtMs !== null && nowMs - polledAtMs < pollSeconds * 1_000 - TOLERANCE_MS
}

/** Timers of programs, and the way of a request, are not exact. */
const TOLERANCE_MS = 250

function isWaiting({ isDenied, userId, untilMs }: DeviceRecord, nowMs: number): boolean {
  return !isDenied && userId === null && untilMs > nowMs
}

function newUserCode(): string {
  let code = ''
  while (code.length < USER_CODE_LENGTH) code += ALPHABET.charAt(randomInt(ALPHABET.length))
  return code
}

function userCodeId(code: string): string {
  return digestOf(`user code ${code}`)
}

function readDevice({ text }: Pick<SignInToken, 'text'>): DeviceRecord {
  const value: unknown = JSON.parse(text)
  const record = isObject(value) ? value : {}
  const { program, address, untilMs, pollSeconds, polledAtMs, userId, accountId, isDenied } = record
  const { id, endsAtMs } = isObject(record['session']) ? record['session'] : {}
  return {
    program: typeof program === 'string' ? program : '',
    address: typeof address === 'string' ? address : '',
    untilMs: typeof untilMs === 'number' ? untilMs : 0,
    pollSeconds: typeof pollSeconds === 'number' ? pollSeconds : POLL_SECONDS,
    polledAtMs: typeof polledAtMs === 'number' ? polledAtMs : null,
    userId: typeof userId === 'string' ? userId : null,
    accountId: typeof accountId === 'string' ? accountId : null,
    session: {
      id: typeof id === 'string' ? id : '',
      endsAtMs: typeof endsAtMs === 'number' ? endsAtMs : 0,
    },
    isDenied: isDenied === true,
  }
}

/** Wrong codes of an address before it waits, and for how long it waits. */
const WRONG_CODES = 5
const WAIT_MS = 60_000

/** Ms until the address may enter a user code again; 0: now. */
export async function userCodeWaitMs(tokens: SignInTokens, address: string, nowMs: number): Promise<number> {
  const found = await tokens.find('wrong_codes', wrongCodesId(address), nowMs)
  return found !== null && Number(found.text) >= WRONG_CODES ? found.expiresAtMs - nowMs : 0
}

/** Counts a wrong user code of the address. */
export async function noteWrongUserCode(tokens: SignInTokens, address: string, nowMs: number): Promise<void> {
  const id = wrongCodesId(address)
  const expiresAtMs = nowMs + WAIT_MS
  const one = ({ text }: { readonly text: string }) => ({ text: String(Number(text) + 1), expiresAtMs })
  for (;;) {
    if ((await tokens.change('wrong_codes', id, one, nowMs)) !== null) return
    // An expired count keeps its id until it is removed.
    await tokens.sweep(nowMs)
    const first = { id, kind: 'wrong_codes', accountId: '', expiresAtMs, text: '1' } as const
    if (await tokens.add(first)) return
  }
}

function wrongCodesId(address: string): string {
  return digestOf(`wrong codes ${address}`)
}
