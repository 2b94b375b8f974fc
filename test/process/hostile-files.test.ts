/**
 * Goal: no file that a user names makes a command or a running gateway hang or use much memory: a FIFO
 * without a writer, an endless device, a file of 200 MB.
 * Method: the real program reads such files from every setting, one a day, and option that names one; its
 * peak memory is measured.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { openConfig } from '../../src/config/generations/config-at-start.js'
import { ofToday } from '../helpers/long-suite.js'
import { MAIN } from './program.js'

const MEASURE = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => process.stderr.write('\\nKB ' + process.resourceUsage().maxRSS))",
)}`
const TIMEOUT_MS = 20_000
/** The commands need about 90 MB for themselves. */
const MAX_KB = 200_000

const CONFIG = `server: { port: 0, ops_port: 0 }
upstreams:
  openai: { dialect: openai, base_url: https://api.openai.com/v1, api_key: KEY }
routes: [{ prefix: gpt-, upstream: openai }]
`

interface Files {
  readonly folder: string
  /** Paths by their fault. */
  readonly bad: Readonly<Record<string, string>>
  readonly good: string
}

function filesFor(t: Test): Files {
  const folder = t.testdir({ 'gateway.yaml': CONFIG, large: '' })
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  const [fifo, large] = [join(folder, 'fifo'), join(folder, 'large')]
  execFileSync('mkfifo', [fifo])
  truncateSync(large, 200 * 1024 * 1024)
  return { folder, bad: { fifo, large, device: '/dev/zero' }, good: join(folder, 'gateway.yaml') }
}

async function sluice(args: readonly string[]) {
  const child = spawn(process.execPath, ['--import', MEASURE, MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  clearTimeout(timer)
  const kilobytes = Number(/\nKB (\d+)$/.exec(err)?.[1] ?? Infinity)
  return { status: child.exitCode ?? child.signalCode, output: out + err, kilobytes }
}

void t.test('a configuration, catalogue or secret that is not a regular file is refused', async (t) => {
  const { folder, bad } = filesFor(t)
  for (const [name, path] of Object.entries(bad)) {
    const models = join(folder, `models-${name}.yaml`)
    writeFileSync(models, `models: ${path}\n${CONFIG}`)
    const secret = join(folder, `secret-${name}.yaml`)
    writeFileSync(secret, CONFIG.replace('KEY', `'\${file:${path}}'`))
    for (const config of ofToday([path, models, secret], 3)) {
      const { status, output, kilobytes } = await sluice(['check', '--config', config])
      t.equal(status, 1, `${name}: ${config}`)
      t.match(output, name === 'large' ? /is larger than (?:4 M|64 K)iB/ : /is not a regular file/)
      t.ok(kilobytes < MAX_KB, `${String(kilobytes)} KB`)
    }
  }
})

void t.test('a body that is not a regular file is refused', async (t) => {
  const { bad, good } = filesFor(t)
  const explain = ['explain', 'gpt-5.4', '--config', good, '--body']
  for (const path of [bad['fifo'] ?? '', '/dev/zero']) {
    const { status, output, kilobytes } = await sluice([...explain, path])
    t.equal(status, 1)
    t.match(output, 'it is not a regular file')
    t.ok(kilobytes < MAX_KB, `${String(kilobytes)} KB`)
  }
})

void t.test(
  'a running gateway keeps its configuration when the file is replaced by a special file',
  async (t) => {
    const { folder, bad, good } = filesFor(t)
    const source = await openConfig(good, {})
    t.teardown(() => source.close())
    const before = process.memoryUsage().rss
    const message = /is larger than 4 MiB|is not a regular file/
    for (const path of [bad['large'] ?? '', bad['fifo'] ?? '']) {
      renameSync(path, good)
      t.match(await source.reload(), { result: 'refused', errors: [{ message }] })
    }
    const grown = process.memoryUsage().rss - before
    t.ok(grown < 100e6, `${String(grown)} bytes more`)
    writeFileSync(join(folder, 'new'), `${CONFIG}on_loss: reject\n`)
    renameSync(join(folder, 'new'), good)
    t.match(await source.reload(), { result: 'applied' })
  },
)
