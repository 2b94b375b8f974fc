/**
 * Goal: `sluice rehearse` passes for an upstream of every dialect, never spends more than `--max-usd`, and
 * creates no files.
 * Method: the command in this process against the emulator, and the built program for one upstream, the text
 * of the ceiling and wrong usage.
 */
import { readdirSync } from 'node:fs'
import t from 'tap'
import { CHECKS } from '../../../src/cli/rehearse/checks.js'
import { CANARY } from '../../process/program.js'
import { openRehearsal } from './scene.js'
import { ofToday } from '../../helpers/long-suite.js'

const { emulator, rehearse, spawned, report, temporary } = await openRehearsal(t)

const UPSTREAMS = [
  ['chat', 'gpt-5.4'],
  ['responses', 'gpt-5.5'],
  ['anthropic', 'claude-opus-5-5'],
  ['google', 'gemini-3.5-flash'],
] as const

for (const [upstream, model] of ofToday(UPSTREAMS, 4)) {
  void t.test(`an upstream of ${upstream} passes every check in every client format`, async (t) => {
    const start = upstream === 'chat' ? spawned : rehearse
    const ran = await report(['--upstream', upstream, '--model', model], start)
    const { status, made, results, out, err } = ran
    t.equal(status, 0, err)
    t.equal(results.length, 4 * CHECKS.length)
    t.same(
      results.filter(({ result }) => result === 'fail' || result === 'not run'),
      [],
    )
    t.ok(results.filter(({ result }) => result === 'pass').length >= 36, 'most of them pass')
    t.match(made, { ok: true, upstream, model, assumed_price: false })
    t.ok(Number(made['cost_usd']) > 0 && Number(made['cost_usd']) < 0.5)
    t.equal(err.split('\n').filter((line) => / in \d+ ms/.test(line)).length, results.length)
    t.notMatch(out + err, CANARY)
    t.same(readdirSync(temporary), [], 'no files are left')
  })
}

const CLOUDS = [
  ['bedrock', 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'],
  ['converse', 'amazon.nova-pro-v1:0'],
  ['vertex', 'gemini-2.5-pro'],
  ['azure', 'gpt-5.4'],
] as const

for (const [upstream, model] of ofToday(CLOUDS, 4)) {
  void t.test(`an upstream of ${upstream} passes every check`, async (t) => {
    const args = ['--upstream', upstream, '--model', model, '--format', 'messages']
    const { status, results, out, err } = await report(args)
    t.equal(status, 0, err)
    t.same(
      results.filter(({ result }) => result !== 'pass'),
      [],
    )
    t.notMatch(out + err, CANARY)
  })
}

void t.test('a field that the gateway cannot translate is a loss, not a failure', async (t) => {
  const stop = ['--format', 'chat', '--check', 'stop']
  const claude = ['--upstream', 'anthropic', '--model', 'claude-opus-5-5']
  const carried = await report([...claude, ...stop])
  t.equal(carried.status, 0)
  t.match(carried.results, [{ check: 'stop', result: 'loss', lost: ['reply.stop_sequence'] }])
  const refused = await report(['--upstream', 'responses', '--model', 'gpt-5.5', ...stop])
  t.equal(refused.status, 0)
  t.match(refused.results, [{ result: 'loss', detail: /stop/ }])
})

void t.test('the run stops before it exceeds the ceiling', async (t) => {
  const asked = ['--upstream', 'chat', '--model', 'gpt-5.4', '--max-cost-usd']
  const { status, made, results } = await report([...asked, '0.03'])
  t.equal(status, 1)
  t.equal(made['ok'], false)
  t.ok(Number(made['cost_usd']) <= 0.03, 'the cost is below the ceiling')
  t.ok(results.some(({ result }) => result === 'pass'))
  t.equal(results.at(-1)?.['result'], 'not run')

  emulator.reset()
  const none = await spawned(...asked, '0.000001')
  t.equal(none.status, 1)
  t.match(none.out, 'Stopped by the cost ceiling with 44 checks left: raise --max-cost-usd')
  t.equal(emulator.ledger.length, 0, 'no request is sent')
})

void t.test('a model without a price counts with the assumed price', async (t) => {
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
  const message = { role: 'assistant', content: 'Hello.' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  const body = JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', choices, usage })
  emulator.replay({ status: 200, headers: { 'content-type': 'application/json' }, body })
  const only = ['--format', 'chat', '--check', 'text']
  const asked = ['--upstream', 'chat', '--model', 'gpt-unheard-of']
  const { made, out } = await report([...asked, ...only])
  t.match(made, { ok: true, assumed_price: true }, out)
  t.ok(Number(made['cost_usd']) > 0)
})

void t.test('the guardrails of the route are named', async (t) => {
  const only = ['--format', 'chat', '--check', 'text', '--upstream', 'chat', '--model']
  const guarded = await rehearse(...only, 'gpt-guarded')
  t.match(guarded.out, /^Without the guardrails of the route: words /m)
  const { made } = await report([...only, 'gpt-guarded'])
  t.same(made['guardrails'], [{ name: 'words', on: ['request', 'response'], action: 'mask' }])
})

void t.test('the table lists each check, and a missing reply times out', async (t) => {
  emulator.script({ fault: { kind: 'hang' } })
  t.teardown(() => emulator.reset())
  const { status, out } = await rehearse(
    ...['--upstream', 'chat', '--model', 'gpt-5.4', '--format', 'chat,gemini', '--check', 'text'],
    ...['--timeout-ms', '300'],
  )
  t.equal(status, 1)
  t.match(out, /check +chat +gemini\ntext +fail +fail\n/)
  t.match(out, 'chat text: fail: no complete reply within 300 ms')
  t.match(out, '0 passed, 0 with losses, 2 failed, 0 skipped')
})

void t.test('wrong usage is reported with its problem', async (t) => {
  const known = ['--upstream', 'chat', '--model', 'm']
  const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['--model', 'gpt-5.4'], 2, /needs --upstream NAME/],
    [['--upstream', 'chat'], 2, /needs --model ID/],
    [
      [...known, '--format', 'soap'],
      2,
      /--format must be names separated by commas, not "soap": chat, messages/,
    ],
    [[...known, '--check', 'all'], 2, /--check must be names separated by commas, not "all": text, stream/],
    [[...known, '--max-cost-usd', '0'], 2, /--max-cost-usd must be/],
    [['--upstream', 'nowhere', '--model', 'm'], 1, /no upstream "nowhere" in the file: use one of chat, /],
    [['--upstream', 'keyless', '--model', 'm'], 1, /has no key: set NO_SUCH_KEY_IS_SET/],
  ]
  for (const [args, expected, message] of cases) {
    const start = args.includes('nowhere') || args.length === 2 ? spawned : rehearse
    const { status, err } = await start(...args)
    t.equal(status, expected, args.join(' '))
    t.match(err, message)
  }
})
