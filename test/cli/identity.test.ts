/**
 * Goal: `sluice identity` denies, lists and allows identities, with audit entries, and refuses a name that
 * the configuration does not have.
 * Method: a store in a temporary folder; the built program for the exit status.
 */
import t from 'tap'
import { command } from '../../src/cli/identity.js'
import { configFolder, newSession, runOn, sluice } from './session.js'

void t.test('denies, lists and allows', async (t) => {
  const session = await newSession(t)
  const run = (...argv: string[]): Promise<number> => runOn(session, command, argv)
  const of = ['--identity', 'kubernetes']
  t.equal(await run('list'), 0)
  t.match(session.errors(), ['No identity is denied.'])
  t.equal(await run('deny', ...of, '--sub', 'a', '--reason', 'leaked', '--expires', '12h'), 0)
  t.match(session.output(), [/^den_\w{16}: sub a of kubernetes is denied$/])
  t.equal(await run('deny', ...of, '--jti', 'one'), 0)
  session.output()
  const { denials, auditTrail } = session.store
  t.equal(await denials.isDenied({ identity: 'kubernetes', sub: 'a', jti: null }, Date.now()), true)
  t.equal(await run('list', '--json'), 0)
  const listed = JSON.parse(session.output().join('\n')) as Record<string, unknown>[]
  t.match(listed, [
    { identity: 'kubernetes', sub: null, jti: 'one', reason: '', expires_at: null },
    { identity: 'kubernetes', sub: 'a', jti: null, reason: 'leaked', expires_at: /^20/ },
  ])
  t.equal(await run('list'), 0)
  t.match(session.output().join('\n'), /DENIAL +IDENTITY[\s\S]*sub a/)
  t.equal(await run('allow', ...of, '--sub', 'a'), 0)
  t.match(session.output(), [/removed$/])
  t.equal(await run('allow', ...of, '--sub', 'a'), 1, 'it is not denied')
  t.equal(await run('allow', ...of, '--jti', 'one'), 0)
  t.equal(await denials.isDenied({ identity: 'kubernetes', sub: 'a', jti: 'one' }, 0), false)
  const trail = await auditTrail.page({ accountId: null, after: null, limit: 10 })
  const actions = trail.map(({ action }) => action)
  t.same(actions, ['denial.remove', 'denial.remove', 'denial.create', 'denial.create'])
  t.match(trail[0], { actor: /^command line/, before: { jti: 'one' }, after: null })
  await t.rejects(run('deny', '--identity', 'kubernets', '--sub', 'a'), { message: /Use "kubernetes"/ })
})

void t.test('wrong usage', async (t) => {
  const session = await newSession(t)
  for (const argv of [
    ['deny', '--sub', 'a'],
    ['deny', '--identity', 'x'],
    ['deny', '--identity', 'x', '--sub', 'a', '--jti', 'b'],
    ['allow', '--identity', 'x'],
    ['list', '--sub', 'a'],
    [],
  ]) {
    await t.rejects(runOn(session, command, argv), { name: 'UsageError' }, argv.join(' '))
  }
  const { good } = configFolder(t)
  const usage = await sluice(['identity', 'deny', '--config', good])
  t.equal(usage.status, 2)
  const help = await sluice(['identity', '--help'])
  t.match([help.status, help.out], [0, /Usage: sluice identity deny/])
})
