/**
 * Goal: a token that reads the configuration reads no secret: neither by a comparison with a text of its own
 * nor in what the gateway shows of its settings.
 * Method: texts that put variables and files of the gateway where the comparison would show them.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluiceHere } from '../../cli/session.js'
import { anotherDay, ofToday } from '../../helpers/long-suite.js'
import { startAdmin } from './admin-stage.js'

const VARIABLE = 'canary-variable-7d1f'
const FILED = 'canary-file-4a90'
process.env['SLUICE_TEST_CANARY'] = VARIABLE
process.env['SLUICE_TEST_MODEL'] = 'gpt-5.4-mini'
process.env['SLUICE_TEST_GUARD'] = 'https://guard.example/v1/canary-path-33c1'

const { ask, gateway, makeToken } = await startAdmin(t, {
  routes: `
  - { model: quick, targets: [{ upstream: openai, model: '\${SLUICE_TEST_MODEL}' }] }
  - { model: shown, targets: [{ upstream: openai, model: '\${SLUICE_TEST_CANARY}' }] }`,
  more: `
guardrails:
  topics: { url: '\${SLUICE_TEST_GUARD}', protocol: webhook }`,
  server: "admin_token: '${SLUICE_TEST_CANARY}'",
})
const token = await makeToken(['config:read'])
const secretFile = join(gateway.folder, 'secret.txt')
writeFileSync(secretFile, FILED)
const own = gateway.load().config
const text = `
server: { admin_token: '\${SLUICE_TEST_CANARY}' }
upstreams:
  openai: { dialect: openai-chat, base_url: 'https://api.example/v1', api_key: sent }
routes:
  - { prefix: gpt-, upstream: openai }
`

function withRoute(model: string, more = ''): string {
  return `${text}  - { prefix: claude-, targets: [{ upstream: openai, model: '${model}' }] }\n${more}`
}

async function plan(config: string) {
  const reply = await ask('POST', '/plan', { token, body: { config } })
  for (const secret of [VARIABLE, FILED]) t.notMatch(reply.text, secret, config)
  return reply
}

void t.test('a placeholder that the configuration lacks at this path becomes a constant', async (t) => {
  const values = ['${SLUICE_TEST_CANARY}', 'x-${SLUICE_TEST_CANARY}', '${SLUICE_TEST_MODEL}']
  const read = [`\${file:${secretFile}}`, '${file:secret.txt}', '${NOT_SET}']
  // One plan with a route for each: a plan takes a second.
  const routes = [...values, ...read].map(
    (value, at) => `  - { model: 'at-${at}', targets: [{ upstream: openai, model: '${at}-${value}' }] }\n`,
  )
  const reply = await plan(text + routes.join(''))
  t.equal(reply.status, 200, reply.text)
  for (const [at, value] of [...values, ...read].entries()) {
    t.match(reply.text, `"model":"${at}-${value.replace(/\$\{.*\}/, 'placeholder')}"`, value)
  }
})

void t.test('one that it has at this path is replaced', async (t) => {
  const routes = Array.from({ length: 10 }, (_, at) => `  - { prefix: p${at}-, upstream: openai }\n`).join('')
  const head = text.replace(/ {2}- .*\n/, '')
  const quick = "  - { model: quick, targets: [{ upstream: openai, model: '${SLUICE_TEST_MODEL}' }] }\n"
  const reply = await plan(head + routes + quick)
  t.equal(reply.status, 200, reply.text)
  t.notMatch(reply.text, 'placeholder')
  const other = quick.replace('_MODEL', '_CANARY')
  t.match(await plan(head + routes + other), { status: 200, text: /"placeholder"/ })
})

void t.test('a configured secret is hidden, also where nothing marks it as one', async (t) => {
  // The file of models is one of the configuration in force.
  const reply = await plan(withRoute('gpt-5.4', 'models: models.yaml'))
  t.equal(reply.status, 200)
  for (const path of ['/config', '/generations/1', '/generations']) {
    const shown = await ask('GET', path, { token })
    t.equal(shown.status, 200)
    t.notMatch(shown.text, /canary/, path)
  }
  const shown = await ask('GET', '/config', { token })
  t.match(shown.json, { guardrails: { topics: { url: /^https:\/\/guard\.example\/\*\*\*[0-9a-f]{4}$/ } } })
  t.equal(own.guardrails.length, 1)
})

void t.test('no files are read but those of the configuration in force', async (t) => {
  const settings = [
    `models: ${secretFile}`,
    'models: secret.txt',
    'models: not-there.yaml',
    `plugins: [${secretFile}]`,
    `identity: [{ name: a, issuer: 'https://a.example', audience: [a], account: a, jwks_file: ${secretFile} }]`,
  ]
  for (const more of ofToday(settings, settings.length)) {
    const reply = await plan(withRoute('gpt-5.4', more))
    t.match(reply, { status: 400, json: { detail: /only use files of the configuration in force/ } }, more)
  }
})

void t.test('the commands hide secrets, too', { skip: anotherDay(0, 2) }, async (t) => {
  const explained = await sluiceHere(['explain', 'shown', '--config', gateway.configFile])
  t.equal(explained.status, 0, explained.err)
  t.match(explained.out, /sent as +\*\*\*/)
  const json = await sluiceHere(['explain', 'shown', '--config', gateway.configFile, '--json'])
  const file = join(gateway.folder, 'new.yaml')
  writeFileSync(file, withRoute('${SLUICE_TEST_CANARY}'))
  const planned = await sluiceHere(['plan', file, '--config', gateway.configFile, '--offline'])
  for (const { out, err } of [explained, json, planned]) t.notMatch(out + err, VARIABLE)
  t.match(planned.out, /\*\*\*/)
  const bound = await sluiceHere(['plan', file, '--untrusted', '--config', gateway.configFile, '--offline'])
  t.match(bound.out, /placeholder/)
})
