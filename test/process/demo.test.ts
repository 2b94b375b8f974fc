/**
 * Goal: the commands that the demo prints work when pasted, its file can be edited, and its files are
 * removed.
 * Method: the real program; a shell runs its printed commands unchanged.
 */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { Browser } from '../dashboard/fixtures/stage.js'
import { anotherDay, ofToday } from '../helpers/long-suite.js'
import { get, run, until, type Program } from './program.js'

const shell = promisify(execFile)

interface Demo {
  readonly program: Program
  readonly base: string
  /** The printed commands, in order, each as one shell script. */
  readonly commands: readonly string[]
  readonly metrics: string
  readonly file: string
  /** The temporary folder of the demo. */
  readonly tmp: string
}

async function startDemo(t: Test, args: readonly string[] = ['--port', '0', '--ops-port', '0']) {
  const tmp = mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  t.teardown(() => rmSync(tmp, { recursive: true }))
  const program = run(t, ['demo', ...args], { TMPDIR: tmp })
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`it exited: ${program.err()}`)
    return program.out().includes('Ctrl-C')
  })
  const text = program.out()
  const find = (pattern: RegExp): string => pattern.exec(text)?.[1] ?? ''
  return {
    program,
    base: find(/Sluice is up at (\S+)\. /),
    commands: text
      .split('\n\n')
      .map((part) => part.trim())
      .filter((part) => /^(?:curl|node) /.test(part)),
    metrics: find(/metrics +(\S+)/),
    file: find(/configuration +(\S+)/),
    tmp,
  } satisfies Demo
}

async function paste(command: string): Promise<string> {
  return (await shell('sh', ['-c', command])).stdout
}

void t.test('a demo on free ports', async (t) => {
  const demo = await startDemo(t)
  await t.test('every page of the dashboard has sample data, for users in every role', (t) =>
    dashboard(t, demo),
  )
  await t.test('the printed commands work unchanged', (t) => printedCommands(t, demo))
  await t.test('it runs the example of batches, and ranks', (t) => batches(t, demo))
  await t.test('its configuration file can be edited while it runs', (t) => edited(t, demo))
  await endsClean(t, demo)
})

void t.test('a requested port that is in use ends the demo, and its files are removed', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const both = [
    ['--port', String(port), '--ops-port', '0'],
    ['--port', '0', '--ops-port', String(port)],
  ]
  for (const args of ofToday(both, 2)) {
    const tmp = t.testdir({})
    const program = run(t, ['demo', ...args], { TMPDIR: tmp })
    t.equal(await program.ended, 1)
    t.match(program.err(), `cannot listen on 127.0.0.1:${port} (EADDRINUSE)`)
    t.same(readdirSync(tmp), [])
  }
})

void t.test('npm run demo reports the progress of its build, and stops when it fails', async (t) => {
  const folder = t.testdir({
    bin: { npm: '#!/bin/sh\nsleep 5\n' },
    dist: { 'main.js': 'console.log(process.argv.slice(1).join(" "))' },
    'package.json': '{"type":"module"}',
  })
  const npm = join(folder, 'bin/npm')
  chmodSync(npm, 0o755)
  const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` }
  const script = [resolve('scripts/demo.mjs'), '--port', '0']
  const options = { env, cwd: folder }
  const { stdout, stderr } = await shell(process.execPath, script, options)
  t.equal(stdout, `${join(folder, 'dist/main.js')} demo --port 0\n`)
  t.match(stderr, /^Building .+\nbuilding: 2 s\n/)
  writeFileSync(npm, '#!/bin/sh\nexit 3\n')
  await t.rejects(shell(process.execPath, script, options), { code: 3, stdout: '' })
})

void t.test('npm run demo builds the parts whose sources have changed', async (t) => {
  const parts = pathToFileURL(resolve('scripts/changed-parts.mjs')).href
  const folder = t.testdir({
    bin: { npm: '#!/bin/sh\nexec node build.mjs "$@"\n' },
    'build.mjs': `import { changedParts, recordBuilt } from '${parts}'
      const parts = changedParts()
      console.error(process.argv.slice(2).join(' '), 'builds', [...parts.keys()].join(' '))
      recordBuilt(parts)`,
    src: { 'main.ts': '1', dashboard: { web: { 'page.tsx': '1' } } },
    dist: { 'main.js': '', dashboard: { web: { 'index.html': '' } } },
    'package.json': '{"type":"module"}',
  })
  chmodSync(join(folder, 'bin/npm'), 0o755)
  const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` }
  const start = async (): Promise<string> => {
    const { stderr } = await shell(process.execPath, [resolve('scripts/demo.mjs')], { env, cwd: folder })
    return / builds .*/.exec(stderr)?.[0] ?? stderr
  }
  t.equal(await start(), ' builds gateway page')
  t.equal(await start(), '', 'a second start builds nothing')
  writeFileSync(join(folder, 'src/main.ts'), 'two')
  t.equal(await start(), ' builds gateway')
  writeFileSync(join(folder, 'src/dashboard/web/new.tsx'), '')
  t.equal(await start(), ' builds page')
  rmSync(join(folder, 'src/dashboard/web/page.tsx'))
  t.equal(await start(), ' builds page')
  rmSync(join(folder, 'dist/dashboard'), { recursive: true })
  t.equal(await start(), ' builds page', 'a missing page is built')
})

const skipKept = anotherDay(1, 4)
void t.test('--folder keeps the account and its key', { skip: skipKept }, async (t) => {
  const folder = join(t.testdir({}), 'kept')
  const taken = createServer()
  // If another process already uses the port, the test is as valid.
  taken.on('error', () => undefined).listen(8080, '127.0.0.1')
  t.teardown(() => taken.close())
  const keys: string[] = []
  for (const ports of [[], ['--port', '0']]) {
    const demo = await startDemo(t, [...ports, '--ops-port', '0', '--folder', folder])
    const isTaken = /port 8080 is in use: using a free one/.test(demo.program.err())
    t.equal(isTaken, ports.length === 0, 'a default port that is in use is reported')
    t.notMatch(demo.base, ':8080/')
    const [whole = ''] = demo.commands
    t.match(JSON.parse(await paste(whole)), { object: 'chat.completion' })
    keys.push(/Bearer (sk_\w+)/.exec(whole)?.[1] ?? '')
    demo.program.child.kill('SIGTERM')
    t.equal(await demo.program.ended, 0)
  }
  t.equal(keys[0], keys[1])
  t.ok(existsSync(join(folder, 'gateway.yaml')))
})

async function dashboard(t: Test, demo: Demo): Promise<void> {
  const text = demo.program.out()
  const password = /password +(\S+)/.exec(text)?.[1] ?? ''
  const origin = new URL(demo.base).origin
  const signedIn = async (email: string): Promise<Browser> => {
    const browser = new Browser(origin)
    t.match((await browser.signIn(email, password)).json, { sampleData: true }, email)
    return browser
  }
  const admin = await signedIn('demo@example.com')
  t.match(text, /SAMPLE DATA/)

  await t.test('the pages', async (t) => {
    const nowMs = Date.now()
    const recent = `fromMs=${nowMs - 30 * 86_400_000}&toMs=${nowMs}`
    for (const path of [
      ...[
        `/usage?account=all&by=day&${recent}`,
        '/requests?account=all',
        '/keys',
        '/accounts',
        '/audit?account=all',
      ],
      ...['/models', '/members?account=sample-shop', '/operations', '/providers', '/limits'],
    ]) {
      const { status, json } = await admin.get(path)
      t.equal(status, 200, path)
      const lists = Object.values(json).filter((value) => Array.isArray(value))
      t.ok(
        lists.some((list) => list.length > 0),
        `${path} has rows`,
      )
    }
    const month = new Date(Date.now() - 32 * 86_400_000).toISOString().slice(0, 7)
    t.equal((await admin.get(`/statements/${month}?account=sample-company`)).status, 200)
    const names = JSON.stringify((await admin.get('/keys?account=all')).json)
    for (const [, name = ''] of names.matchAll(/"name":"([^"]+)"/g)) {
      t.match(name, /^(sample-|demo$)/, 'made-up keys have the name of a sample')
    }
  })

  await t.test('the configuration has two generations, and can be rolled back', async (t) => {
    const list = await admin.get('/configuration')
    t.match(list.json, { generations: [{ generation: 2 }, { generation: 1 }] })
    const detail = await admin.get('/configuration/2?from=1')
    t.match(JSON.stringify(detail.json), 'claude-opus', 'the difference')
    const back = await admin.ask('POST', '/configuration/1/rollback', {
      body: { reason: 'a test' },
    })
    t.equal(back.status, 200, back.text)
  })

  await t.test('an upstream fails, limits refuse requests, a deprecated model is used', async (t) => {
    const requests = async (): Promise<string> => (await admin.get('/requests?account=all&limit=50')).text
    await until(async () => {
      const { json } = await admin.get('/operations')
      const upstreams = json['upstreams'] as { name: string; breaker: string }[]
      return upstreams.find(({ name }) => name === 'unreliable')?.breaker !== 'closed'
    })
    const models = (await admin.get('/models')).json['models'] as {
      id: string
      endsOn: string | null
    }[]
    const ending = models.filter(({ endsOn }) => endsOn !== null).map(({ id }) => id)
    await until(async () => {
      const text = await requests()
      return ending.some((id) => text.includes(`"modelAsked":"${id}"`))
    })
    await until(async () => /"limit":"key:\w+;own requests_per_minute"/.test(await requests()))
    await until(async () => /"limit":"key:\w+;own usd_per_day"/.test(await requests()))
    const { json } = await admin.get('/limits?account=sample-company')
    t.match(json['limits'], [{ keyName: 'sample-evaluation', kind: 'usd_per_day', left: 0 }])
  })

  await t.test('what the roles may read', async (t) => {
    for (const [email, path, status] of [
      ['sample-auditor@example.com', '/accounts', 200],
      ['sample-owner@example.com', '/members?account=sample-shop', 200],
      ['sample-owner@example.com', '/accounts', 403],
      ['sample-member@example.com', '/keys?account=sample-shop', 200],
      ['sample-viewer@example.com', '/requests?account=sample-shop', 200],
      ['sample-viewer@example.com', '/keys?account=sample-shop', 403],
    ] as const) {
      t.equal((await (await signedIn(email)).get(path)).status, status, `${email} ${path}`)
    }
  })
}

async function batches(t: Test, { base, commands }: Demo): Promise<void> {
  const [, key = ''] = /Bearer (\S+?)['"]/.exec(commands[0] ?? '') ?? []
  const env = { ...process.env, SLUICE_URL: base.replace(/\/v1$/, ''), SLUICE_KEY: key }
  const { stdout } = await shell('sh', ['examples/curl/batches.sh'], { env })
  t.match(JSON.parse(stdout), { custom_id: 'line-0', response: { status_code: 200 }, error: null })
  const ranked = await fetch(`${base}/rerank`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'rerank-v3.5', query: 'a river', documents: ['the Nile', 'a cat'] }),
  })
  t.match(await ranked.json(), { results: [{ index: /\d/ }, { index: /\d/ }] })
}

async function printedCommands(t: Test, demo: Demo): Promise<void> {
  t.match(demo.program.out(), /EMULATED/)
  const [
    whole = '',
    stream = '',
    other = '',
    models = '',
    bedrock = '',
    vertex = '',
    azure = '',
    messages = '',
    responses = '',
    newKey = '',
  ] = demo.commands
  t.equal(demo.commands.length, 10)
  for (const command of [whole, other, bedrock, vertex, azure]) {
    const text = await paste(command)
    t.match(text, /\}\n+$/, 'the reply ends with a line break')
    const reply = JSON.parse(text) as { choices: { message: object }[] }
    t.match(reply, { object: 'chat.completion', choices: [{ finish_reason: 'stop' }] })
    t.match(reply.choices[0]?.message, { role: 'assistant', content: /\w/ })
  }
  const events = await paste(stream)
  t.match(events, /^data: .*"role":"assistant"/)
  t.match(events, /data: \[DONE\]\n\n$/)
  const listText = await paste(models)
  t.match(listText, /\}\n$/)
  const list = JSON.parse(listText) as { data: unknown[] }
  t.ok(list.data.length >= 40, `${list.data.length} models`)
  for (const [command, expected] of [
    [messages, { type: 'message', role: 'assistant', content: [{ type: 'text', text: /\w/ }] }],
    [responses, { object: 'response', status: 'completed', output: [{ type: 'message' }] }],
  ] as const) {
    const text = await paste(command)
    t.match(text, /\}\n$/)
    t.match(JSON.parse(text), expected)
  }
  const secret = (await paste(newKey)).trim()
  t.match(secret, /^sk_\w+$/)
  const first = /Bearer (sk_\w+)/.exec(whole)?.[1] ?? ''
  const withNewKey = await paste(whole.replace(first, secret))
  t.match(JSON.parse(withNewKey), { object: 'chat.completion' })
  const metrics = await get(demo.metrics)
  t.equal(metrics.status, 200)
  t.match(metrics.text, /^sluice_requests_total\{/m)
}

async function edited(t: Test, demo: Demo): Promise<void> {
  const [whole = ''] = demo.commands
  const text = readFileSync(demo.file, 'utf8')
  writeFileSync(demo.file, text.replace('prefix: claude-', 'prefix: claude-opus'))
  const within = await until(async () => (await paste(whole)).includes('"unknown_model"'))
  t.ok(within < 1500, `${within} ms, a shell and curl included`)
  writeFileSync(demo.file, 'nonsense: 1\n')
  await until(() => demo.program.out().includes('configuration refused'))
  t.match(demo.program.out(), /gateway\.yaml:1:1/, 'with file, line and column')
}

async function endsClean(t: Test, demo: Demo): Promise<void> {
  t.ok(existsSync(dirname(demo.file)))
  const [signal] = ofToday(['SIGINT', 'SIGTERM'] as const, 2)
  demo.program.child.kill(signal)
  t.equal(await demo.program.ended, 0)
  t.same(readdirSync(demo.tmp), [], 'its folder is removed')
  await t.rejects(get(demo.metrics), 'the ports are closed')
}
