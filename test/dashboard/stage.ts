/**
 * A gateway with a dashboard for the tests of its API, and browsers at it: each has its own cookies, says where
 * it comes from, and sends back the token of its session.
 */
import type { Test } from 'tap'
import { createAccount } from '../../src/accounts/accounts.js'
import type { Account, PlanName } from '../../src/accounts/account.js'
import { isObject, objectOf, type JsonObject } from '../../src/chat/json.js'
import { UNEXPLAINED, type UsageRow } from '../../src/ledger/row.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { startGateway, type GatewaySettings, type TestGateway } from '../helpers/gateway.js'

export const PASSWORD = 'correct horse battery staple'

/** What came back. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Empty where the text is no JSON object. */
  readonly json: JsonObject
  /** `error` of the body; empty where there is none. */
  readonly error: JsonObject
}

/** One browser. */
export class Browser {
  readonly origin: string
  csrf = ''
  private readonly cookies = new Map<string, string>()

  constructor(origin: string) {
    this.origin = origin
  }

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  /** Takes a cookie as another browser had it. */
  take(name: string, value: string): void {
    this.cookies.set(name, value)
  }

  value(name: string): string {
    return this.cookies.get(name) ?? ''
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.ask('GET', path, undefined, headers)
  }

  /** As the page does; `headers` replace, and `''` takes one away. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const changes = method !== 'GET' && method !== 'HEAD'
    const sent = {
      ...(this.cookies.size === 0 ? {} : { cookie: this.cookie }),
      ...(changes ? { origin: this.origin, 'sec-fetch-site': 'same-origin' } : {}),
      ...(changes && this.csrf !== '' ? { 'x-sluice-csrf': this.csrf } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    }
    const response = await fetch(`${this.origin}/dashboard/api${path}`, {
      method,
      redirect: 'manual',
      headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== '')),
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    for (const line of response.headers.getSetCookie()) this.keep(line)
    const answer = await answerOf(response)
    if (typeof answer.json['csrf'] === 'string') this.csrf = answer.json['csrf']
    return answer
  }

  signIn(email: string, password = PASSWORD): Promise<Answer> {
    return this.ask('POST', '/session', { email, password })
  }

  private keep(line: string): void {
    const [pair = ''] = line.split(';')
    const at = pair.indexOf('=')
    const value = pair.slice(at + 1)
    if (value === '') this.cookies.delete(pair.slice(0, at))
    else this.cookies.set(pair.slice(0, at), value)
  }
}

/** A gateway with a dashboard. */
export interface Stage {
  readonly gateway: TestGateway
  readonly origin: string
  /** The gateway's store, opened beside it. */
  readonly store: Store
  /** A browser where nobody is signed in. */
  browser(): Browser
  /** An account on the store. */
  account(email: string, plan?: PlanName, role?: Account['role']): Promise<Account>
  /** A browser where a new account is signed in. */
  signedIn(email: string, plan?: PlanName, role?: Account['role']): Promise<Browser>
}

export async function startStage(t: Test, settings: GatewaySettings = {}): Promise<Stage> {
  const gateway = await startGateway(t, settings)
  const store = await openStore(`sqlite:${gateway.folder}/data/sluice.db`)
  t.teardown(() => store.close())
  const { origin } = gateway
  const account = async (
    email: string,
    plan: PlanName = 'starter',
    role: Account['role'] = 'owner',
  ): Promise<Account> => {
    const made = await createAccount(store, { email, plan, role, password: PASSWORD })
    return made.account
  }
  return {
    gateway,
    origin,
    store,
    account,
    browser: () => new Browser(origin),
    async signedIn(email, plan, role) {
      await account(email, plan, role)
      const browser = new Browser(origin)
      const answer = await browser.signIn(email)
      if (answer.status !== 200) throw new Error(`cannot sign in: ${answer.text}`)
      return browser
    },
  }
}

let made = 0

/** A row of the ledger, as unlike the others as real ones are. */
export function aRow(accountId: string, over: Partial<UsageRow> = {}): UsageRow {
  made += 1
  const atMs = over.atMs ?? Date.now() - 1_000
  return {
    requestId: `0192${String(process.pid)}-${String(made).padStart(8, '0')}`,
    atMs,
    durationMs: 812.5,
    accountId,
    keyId: 'key_1',
    modelAsked: 'gpt-5.4-mini',
    modelAnswered: 'gpt-5.4-mini-2026-01-01',
    model: 'gpt-5.4-mini',
    upstream: 'openai',
    dialect: 'openai-chat',
    attempts: 1,
    stream: true,
    status: 200,
    outcome: 'ok',
    finish: 'stop',
    usage: { input: 100, output: 20, cacheRead: 40, reasoning: 5 },
    source: 'reported',
    costNanoUsd: 1_500_000,
    tokensAfterDisconnect: 0,
    losses: ['logit_bias'],
    generation: 1,
    ...UNEXPLAINED,
    hops: { authenticate: 0.2, receive: 0.4, connect: 12, firstByte: 300, firstContent: 320 },
    ...over,
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  const json = objectIn(text)
  const { status, headers } = response
  return { status, headers, text, json, error: objectOf(json['error']) }
}

function objectIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
