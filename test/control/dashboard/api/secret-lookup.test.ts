/**
 * Goal: a leaked key is found by its digest, by those who may see it; no query of the API has a credential;
 * parts of a mask and revoked keys are found.
 * Method: keys of two accounts; secrets in every form in the query of lists.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { digestOf, newAdminSecret, newSecret } from '../../../../src/accounts/key-secret.js'
import {
  createdKeyReply,
  keysReply,
  lookUpKeyReply,
} from '../../../../src/control/dashboard/schema/schema.js'
import { hasCredential } from '../../../../src/control/dashboard/secret-text.js'
import { startStage, type Browser } from '../../../dashboard/fixtures/stage.js'
import { dice } from '../../../helpers/seeded-random.js'

/** Made for this test; none of them opens anything. */
const FORMS = [
  newSecret(),
  newAdminSecret(),
  `Authorization: Bearer ${newSecret()}`,
  `client = OpenAI(api_key="${newSecret()}")`,
  `sk-proj-${'a1B2c3D4'.repeat(6)}_x`,
  `sk-ant-api03-${'Zz9'.repeat(20)}-AA`,
  `sk-or-v1-${'0123456789abcdef'.repeat(4)}`,
  `AIzaSy${'A1b2C3d4E5f'.repeat(3)}`,
  `AQ.Ab8${'RN6Ix_k2'.repeat(5)}`,
  `ya29.a0${'AfB-y7Qk'.repeat(5)}`,
  `ABSK${'QmVkcm9ja0FQSUtl'.repeat(4)}`,
  `dapi${'0123456789abcdef'.repeat(2)}`,
  `gsk_${'q8W7e6R5'.repeat(5)}`,
  `xai-${'m4N5b6V7'.repeat(8)}`,
  `hf_${'Ab3'.repeat(11)}`,
  `eyJ${'hbGciOiJ'.repeat(3)}.${'eyJzdWIi'.repeat(3)}.${'c2lnbmF0'.repeat(3)}`,
]
const [LOWER, DIGITS] = ['abcdefghijklmnopqrstuvwxyz', '0123456789']
const LETTERS = LOWER + LOWER.toUpperCase()
const BASE62 = LETTERS + DIGITS
/** The form of each vendor's keys: what is fixed, then random characters. */
const VENDORS: readonly (readonly [start: string, alphabet: string, length: number])[] = [
  ...['sk_', 'sat_', 'slt_', 'slr_'].map((start) => [start, BASE62, 44] as const),
  ...['sk-ant-api03-', 'sk-ant-oat01-', 'sk-ant-admin01-'].map(
    (start) => [start, `${BASE62}-_`, 95] as const,
  ),
  ...['sk-proj-', 'sk-svcacct-', 'sk-admin-', 'nvapi-'].map((start) => [start, `${BASE62}-_`, 74] as const),
  ['sk-', BASE62, 48],
  ['sk-', '0123456789abcdef', 32],
  ['AIzaSy', `${BASE62}-_`, 33],
  ...['AKIA', 'ASIA'].map((start) => [start, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16] as const),
  ['gsk_', BASE62, 52],
  ['xai-', BASE62, 80],
  ['hf_', LETTERS, 34],
  ['r8_', BASE62, 37],
  ['fw_', BASE62, 24],
  ['csk-', LOWER + DIGITS, 48],
  ['pplx-', BASE62, 48],
  ['tgp_v1_', `${BASE62}-_`, 43],
  ['glpat-', `${BASE62}-_`, 20],
  ['sk_live_', BASE62, 24],
  ...['ghp_', 'gho_', 'github_pat_'].map((start) => [start, BASE62, 36] as const),
  ['bedrock-api-key-', `${BASE62}+/`, 120],
  ['vck_', BASE62, 56],
  ['vcp_', BASE62, 56],
  ['cpk_', '0123456789abcdef', 32],
  ['psk-', BASE62, 40],
  ['jina_', BASE62, 60],
  ['pa-', `${BASE62}-_`, 43],
  ['rc_', '0123456789abcdef', 64],
  ['0123456789abcdef0123456789abcdef.', BASE62, 16],
]
const RANDOM_KEYS = 100

const PLAIN = [
  'sk-team-platform-prod-2026-eu-west',
  'hf-meta-llama-3-8b-instruct-long',
  'fw-deepseek-v3-instruct-base',
  'skyscanner2026productionteam',
  'sess-timeouts-of-the-checkout-app',
  'satellitenkommunikationsdienste',
  'ci-runner',
  'sk_9fQ2x',
  'sk-learn-embeddings',
  'pa-team-of-the-checkout-app-in-production',
  'vck-is-not-a-prefix-of-words',
  'key_0123456789abcdef',
  'acc_0123456789abcdef',
  '01927b3e-3f2a-7c1d-9e8f-0123456789ab',
  'claude-opus-4-8-20260101',
  'a long name of a key that no one types',
]

void t.test('credentials are recognised, the same by the page and the server', (t) => {
  for (const text of FORMS) t.ok(hasCredential(text), text.slice(0, 12))
  for (const text of PLAIN) t.notOk(hasCredential(text), text)
  const random = dice(50)
  for (const [start, alphabet, length] of VENDORS) {
    const missed = Array.from({ length: RANDOM_KEYS }, () => {
      const end = Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)] ?? '').join(
        '',
      )
      return `${start}${end}`
    }).filter((key) => !hasCredential(`the key "${key}" of ci`))
    t.same(missed, [], start)
  }
  const formsIn = (path: string) => /^ {2}\/.*\/$/m.exec(readFileSync(path, 'utf8'))?.[0]
  const [server, page] = [
    'src/control/dashboard/secret-text.ts',
    'src/dashboard/web/format/secret-text.ts',
  ].map(formsIn)
  t.type(server, 'string')
  t.equal(page, server, 'the page has the same forms')
  t.end()
})

void t.test('a key is found by its digest, and never by a query with its secret', async (t) => {
  const stage = await startStage(t)
  const owner = await stage.signedIn('ada@example.com')
  const other = await stage.signedIn('bob@example.com')
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const made = createdKeyReply.parse((await owner.ask('POST', '/keys', { body: { name: 'laptop' } })).json)
  const { key, secret } = made
  const lookUp = async (browser: Browser, digest: string) => {
    const answer = await browser.ask('POST', '/keys/lookup', { body: { digest } })
    return lookUpKeyReply.parse(answer.json).key
  }
  const digest = digestOf(secret)
  for (const browser of [owner, admin]) {
    t.match(await lookUp(browser, digest), { id: key.id, name: 'laptop', state: 'live' })
  }
  t.equal(await lookUp(other, digest), null, 'a key of another account')
  t.equal(await lookUp(admin, digestOf(newSecret())), null, 'no key')
  t.equal((await admin.ask('POST', '/keys/lookup', { body: { digest: secret } })).status, 400)

  for (const text of FORMS) {
    for (const path of [
      '/keys?search=',
      '/requests?search=',
      '/search?q=',
      '/audit?search=',
      '/users?search=',
    ]) {
      const answer = await admin.get(path + encodeURIComponent(text))
      t.equal(answer.status, 400, `${path}${text.slice(0, 6)}`)
      t.notOk(answer.text.includes(text.slice(-12)), 'the reply does not repeat it')
    }
  }
  await owner.ask('DELETE', `/keys/${key.id}`)
  t.match(await lookUp(owner, digest), { state: 'revoked' })
  const searches = [secret.slice(0, 8), secret.slice(0, 6).toLowerCase(), secret.slice(-4).toUpperCase()]
  searches.push(`${secret.slice(0, 7)}…${secret.slice(-4)}`, `${secret.slice(0, 8)}...${secret.slice(-3)}`)
  for (const search of [...searches, secret.slice(-8), secret.slice(-6), key.id]) {
    const found = await owner.get(`/keys?search=${encodeURIComponent(search)}`)
    t.match(keysReply.parse(found.json).keys, [{ id: key.id, state: 'revoked' }], search.length.toString())
  }
})
