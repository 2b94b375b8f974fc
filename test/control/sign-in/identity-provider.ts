/**
 * An OpenID Connect provider on this machine, and a client that signs in with it as a browser does. The test
 * chooses the user; consent is given at once, or on a page with two buttons.
 */
import { generateKeyPairSync, randomBytes, type JsonWebKey } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { Test } from 'tap'

export const CLIENT_ID = 'sluice'
export const CLIENT_SECRET = 'not-to-be-found-in-any-log'

/** A user of the provider. */
export interface Person {
  readonly email: string
  readonly verified: boolean
  /** Default: made from the e-mail address. */
  readonly sub?: string
  readonly groups?: readonly string[] | string
}

/** The settings of the provider. */
export interface ProviderSettings {
  /** Whether the ID token has the e-mail, or the userinfo endpoint alone. */
  readonly emailInToken: boolean
  /** The provider shows a consent page before it signs users in. */
  readonly hasConsentPage?: boolean
}

/** A running provider. */
export interface TestProvider {
  readonly issuer: string
  /** The user of the next sign-in. */
  person: Person
  /** The status of the userinfo endpoint; null: it works. */
  userInfoStatus: number | null
  /** Signs in at the provider; resolves with the query of its redirect. */
  visit(url: string): Promise<string>
  close(): void
}

/** Listens until the test ends. */
export async function startProvider(
  t: Test,
  redirectUri: () => string,
  { emailInToken, hasConsentPage = false }: ProviderSettings,
): Promise<TestProvider> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${portOf(server)}`
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  t.teardown(close)
  const stand: TestProvider = {
    issuer,
    person: { email: 'ada@example.com', verified: true },
    userInfoStatus: null,
    visit: (url) => visit(url, redirectUri()),
    close,
  }
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [redirectUri()],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: !emailInToken,
    cookies: { keys: [randomBytes(16).toString('hex')] },
    jwks: { keys: [signingKey()] },
    ttl: { Interaction: 60, Grant: 60, Session: 60, AccessToken: 60, IdToken: 60 },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    findAccount: (_ctx, sub) => ({
      accountId: sub,
      claims: () => {
        const { email, verified, groups = [] } = stand.person
        return { sub, email, email_verified: verified, groups }
      },
    }),
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client?.clientId ?? '',
        accountId: ctx.oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email')
      await grant.save()
      return grant
    },
  })
  const answer = provider.callback()
  server.on('request', (req, res) => {
    if (req.url === '/me' && stand.userInfoStatus !== null) {
      res.writeHead(stand.userInfoStatus, { 'content-type': 'text/html' }).end('<h1>Not here</h1>')
      return
    }
    if (req.url?.startsWith('/interaction/') !== true) return void answer(req, res)
    const { email, sub = `sub-${email}` } = stand.person
    if (hasConsentPage && req.method === 'GET') {
      res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(question(email))
      return
    }
    const result = req.url.endsWith('?no') ? { error: 'access_denied' } : { login: { accountId: sub } }
    provider.interactionFinished(req, res, result).catch((error: unknown) => {
      res.writeHead(500).end(String(error))
    })
  })
  return stand
}

function question(email: string): string {
  const button = (action: string, text: string): string =>
    `<form method="post" action="${action}"><button>${text}</button></form>`
  return `<!doctype html><html lang="en"><title>Acme</title><link rel="icon" href="data:,"><h1>Acme</h1>
    ${button('?yes', `Continue as ${email}`)}${button('?no', 'Cancel')}`
}

/** A port on which a server listens and never replies. */
export async function startSilence(t: Test): Promise<string> {
  const server = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${portOf(server)}`
}

/** A new browser each time, without a session at the provider. */
async function visit(start: string, redirectUri: string): Promise<string> {
  const cookies = new Map<string, string>()
  let url = start
  for (let hops = 0; hops < 8; hops += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`the provider does not redirect: ${await response.text()}`)
    await response.body?.cancel()
    url = new URL(location, url).href
    if (url.startsWith(redirectUri)) return new URL(url).search
  }
  throw new Error('the provider redirects too often')
}

let key: JsonWebKey | null = null

/** One for all providers of a process: making one takes 0.3 s of CPU time. */
function signingKey() {
  key ??= newKey()
  return { ...key, use: 'sig', alg: 'RS256', kid: 'test' }
}

function newKey(): JsonWebKey {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return privateKey.export({ format: 'jwk' })
}

function portOf(server: Server): number {
  const address = server.address()
  return (address as AddressInfo).port
}
