/** A gateway at which programs sign in with the device flow, and what programs and people do there. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Test } from 'tap'
import { type JsonObject, objectOf, parsedJson } from '../../../src/base/json.js'
import { oidcStartReply } from '../../../src/control/dashboard/schema/schema.js'
import { startGateway, type GatewaySettings, type TestGateway } from '../../helpers/gateway.js'
import type { Browser } from '../../dashboard/fixtures/stage.js'
import type { ProviderSettings } from '../sign-in/identity-provider.js'
import { scene, type Scene } from '../sign-in/oidc-stage.js'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** A reply of the endpoints for programs. */
export interface FormReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Empty if the text is not a JSON object. */
  readonly json: JsonObject
}

/** The tokens of a program. */
export interface Pair {
  readonly access: string
  readonly refresh: string
}

export interface LoginStage extends Scene {
  /** Posts a form, to this gateway or another one. */
  readonly post: (path: string, form: Record<string, string>, init?: FormInit) => Promise<FormReply>
  /** A browser in which the identity provider has signed the person in. */
  person(email: string, groups?: readonly string[]): Promise<Browser>
  /** Signs a program in for the person of the browser. */
  program(browser: Browser, account?: string): Promise<Pair>
  /** A program that is approved; the function fetches its tokens. */
  approved(browser: Browser, account?: string): Promise<() => Promise<FormReply>>
  /** A further gateway of the store. */
  second(): Promise<TestGateway>
}

interface FormInit {
  readonly origin?: string
  readonly headers?: Record<string, string>
}

/** Starts it; `login` is YAML of the section besides `enabled`, `more` is YAML of other sections. */
export async function startLogin(
  t: Test,
  settings: GatewaySettings = {},
  { login = '', more = '' }: { readonly login?: string; readonly more?: string } = {},
  provider?: ProviderSettings,
): Promise<LoginStage> {
  const stage = await scene(t, provider, settings)
  const top = `login: { enabled: true${login === '' ? '' : `, ${login}`} }\n${more}`
  stage.configure({ top })
  const { origin, gateway } = stage
  // Logins are accepted when their code is loaded.
  await untilStatus(401, () => request(origin, `slt_${'A'.repeat(43)}`))
  const post: LoginStage['post'] = async (path, form, { origin: at = origin, headers = {} } = {}) => {
    const response = await fetch(`${at}${path}`, { method: 'POST', body: new URLSearchParams(form), headers })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: objectOf(parsedJson(text)) }
  }
  const approved: LoginStage['approved'] = async (browser, account) => {
    const { json } = await post('/auth/device/code', {})
    const body = { approve: true, ...(account === undefined ? {} : { account }) }
    const reply = await browser.ask('POST', `/device/${textIn(json, 'user_code')}`, { body })
    if (reply.status !== 200) throw new Error(`not approved: ${reply.text}`)
    const form = { grant_type: DEVICE_GRANT, device_code: textIn(json, 'device_code') }
    return () => post('/auth/device/token', form)
  }
  return {
    ...stage,
    post,
    async person(email, groups = []) {
      const browser = stage.browser()
      stage.provider.person = { email, verified: true, groups }
      const started = await browser.ask('POST', '/oidc/start', { body: {} })
      const query = await stage.provider.visit(oidcStartReply.parse(started.json).url)
      const entered = await browser.ask('POST', '/oidc/finish', { body: { query } })
      if (entered.status !== 200) throw new Error(`cannot sign in: ${entered.text}`)
      return browser
    },
    program: async (browser, account) => pairOf(await (await approved(browser, account))()),
    approved,
    async second() {
      const other = await startGateway(t, { ...settings, hasAccount: true })
      const lines = readFileSync(gateway.configFile, 'utf8').split('\n')
      const from = lines.findIndex((line) => line.startsWith('dashboard:'))
      const rest = lines.slice(from).join('\n')
      writeFileSync(other.configFile, `${readFileSync(other.configFile, 'utf8')}\n${rest}`)
      other.reload()
      return other
    },
  }
}

/** The tokens of a reply. */
export function pairOf({ status, json, text }: FormReply): Pair {
  if (status !== 200) throw new Error(`no tokens: ${status} ${text}`)
  return { access: textIn(json, 'access_token'), refresh: textIn(json, 'refresh_token') }
}

export function textIn(json: JsonObject, name: string): string {
  const value = json[name]
  if (typeof value !== 'string') throw new Error(`the reply has no text ${name}`)
  return value
}

/** A request of a program; resolves with its status when the reply has ended. */
export async function request(origin: string, token: string, init: RequestInit = {}): Promise<number> {
  const reply = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hi' }] }),
    ...init,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  })
  await reply.text()
  return reply.status
}

/** Resolves with the ms until the request has the status; rejects after five seconds. */
export async function untilStatus(status: number, ask: () => Promise<number>): Promise<number> {
  const beganMs = performance.now()
  for (let last = 0; performance.now() - beganMs < 5_000;) {
    last = await ask()
    if (last === status) return performance.now() - beganMs
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`no reply with ${status} came`)
}
