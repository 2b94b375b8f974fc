/**
 * Goal: a failed start exits with 1 and prints the reason; wrong usage exits with 2 and names the help; every
 * command has a help text.
 * Method: the real program with bad files, ports in use and unknown words.
 */
import { writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluiceHere } from '../../cli/session.js'
import { ALONE, fileText, prepare, run, type FileSettings } from '../program.js'
import { ofToday } from '../../helpers/long-suite.js'

const COMMANDS = ['accounts', 'check', 'demo', 'emulate', 'explain', 'keys', 'serve']

void t.test('an invalid file is reported with line and column', async (t) => {
  const { emulator, file } = await prepare(t)
  writeFileSync(file, `${fileText(emulator)}unheard_of: 1\n`)
  const program = run(t, ['serve', '--config', file])
  t.equal(await program.ended, 1)
  t.match(program.err(), /gateway\.yaml:\d+:1.*unheard_of/)
  t.equal(program.out(), '')
  const missing = await sluiceHere(['serve', '--config', join(file, 'nowhere.yaml')])
  t.equal(missing.status, 1)
  t.match(missing.err, /nowhere\.yaml.*does not exist/)
})

void t.test('a port that is in use is named and ends the start', async (t) => {
  const port = await takenPort(t)
  for (const settings of [{ port }, { opsPort: port }]) {
    const { status, err, out } = await failedStart(t, settings)
    t.equal(status, 1)
    t.match(err, `cannot listen on 127.0.0.1:${port} (EADDRINUSE)`)
    t.notMatch(out, '"kind":"bug"')
    if ('port' in settings) t.match(out, '"kind":"cannot_listen"', 'the log of the worker')
  }
})

void t.test('a store that cannot be opened is reported with its path and the reason', async (t) => {
  const inFile = await failedStart(t, { ...ALONE, store: 'sqlite:./models.yaml' })
  t.equal(inFile.status, 1)
  t.match(
    inFile.err,
    /The key store cannot be opened: opening '.*models\.yaml' failed: file is not a database/,
  )
  // Root may write everywhere except in folders that the kernel protects.
  const readOnly = await failedStart(t, { ...ALONE, store: 'sqlite:/sys/sluice/sluice.db' })
  t.equal(readOnly.status, 1)
  t.match(
    readOnly.err,
    /opening '\/sys\/sluice\/sluice\.db' failed: cannot create the folder '\/sys\/sluice' \((EACCES|EPERM|EROFS)\)/,
  )
})

void t.test('wrong usage exits with 2 and a hint', async (t) => {
  const wrong: [string[], RegExp][] = [
    [['sreve'], /Unknown command "sreve" \(did you mean "serve"\?\): 'sluice --help'/],
    [['serve'], /needs a configuration file: pass --config FILE/],
    [['serve', '--port', '1'], /--port/],
    [['keys', 'destroy'], /generate, create, list, edit, rotate, raise, revoke/],
    [['demo', '--port', 'x'], /--port must be a port number from 0 to 65535, not "x"/],
  ]
  for (const [args, message] of ofToday(wrong, 5)) {
    const program = run(t, args)
    t.equal(await program.ended, 2, args.join(' '))
    t.match(program.err(), message)
    t.match(program.err(), /--help/)
    t.equal(program.out(), '')
  }
  const nothing = run(t, [])
  t.equal(await nothing.ended, 2)
  t.match(nothing.out(), /Usage: sluice COMMAND/)
})

void t.test('--version prints the version', async (t) => {
  const program = run(t, ['--version'])
  t.equal(await program.ended, 0)
  t.match(program.out(), /^sluice \d+\.\d+\.\d+\n$/)
})

void t.test('--help lists all commands, and each command has a help text', async (t) => {
  const overview = run(t, ['--help'])
  t.equal(await overview.ended, 0)
  for (const name of COMMANDS) {
    t.match(overview.out(), new RegExp(`^  ${name} +\\S`, 'm'))
    const { status, out, err } = await sluiceHere([name, '--help'])
    t.equal(status, 0, name)
    t.match(out, new RegExp(`^Usage: sluice ${name} `))
    t.match(out, /^Example/m)
    t.equal(err, '')
  }
})

async function failedStart(t: Test, settings: FileSettings) {
  const { file } = await prepare(t, settings)
  const program = run(t, ['serve', '--config', file])
  const status = await program.ended
  return { status, err: program.err(), out: program.out() }
}

async function takenPort(t: Test): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
