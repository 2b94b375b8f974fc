/**
 * Goal: `sluice rehearse --operation` passes for each endpoint beside chat, names what an upstream does not
 * serve or does wrongly, and never spends more than its ceiling.
 * Method: the command in this process against the emulator, and against servers with faults.
 */
import { readdirSync } from 'node:fs'
import t from 'tap'
import { operationChecks, REHEARSED_OPERATIONS } from '../../../src/cli/rehearse/operation-checks.js'
import { CANARY } from '../../process/program.js'
import { openRehearsal } from './scene.js'

const { rehearse, report, temporary } = await openRehearsal(t)

const MODELS: Readonly<Record<(typeof REHEARSED_OPERATIONS)[number], readonly [string, string]>> = {
  rerank: ['ranker', 'rerank-v3.5'],
  moderations: ['chat', 'omni-moderation-latest'],
  images: ['chat', 'gpt-image-2'],
  image_edits: ['chat', 'gpt-image-2'],
  transcriptions: ['chat', 'whisper-1'],
  translations: ['chat', 'whisper-1'],
  speech: ['chat', 'gpt-4o-mini-tts'],
  batches: ['chat', 'gpt-5.4'],
}

for (const operation of REHEARSED_OPERATIONS) {
  void t.test(`${operation}: an upstream passes every check`, async (t) => {
    const [upstream, model] = MODELS[operation]
    const args = ['--operation', operation, '--upstream', upstream, '--model', model, '--max-cost-usd', '5']
    const { status, made, results, out, err } = await report(args)
    t.equal(status, 0, err)
    t.ok(results.length >= 6 && results.length <= 12, String(results.length))
    t.equal(results.length, operationChecks(operation).length)
    t.same(
      results.filter(({ result }) => result === 'fail' || result === 'not run'),
      [],
    )
    t.ok(results.filter(({ result }) => result === 'pass').length >= results.length - 2, out)
    t.equal(made['assumed_price'], false)
    t.match(made, { ok: true, upstream, model, results: [{ format: operation }] })
    t.notMatch(out + err, CANARY)
    t.same(readdirSync(temporary), [], 'no files are left')
  })
}

void t.test('an upstream that does not serve the endpoint fails, with the reason', async (t) => {
  const args = ['--operation', 'images', '--upstream', 'anthropic', '--model', 'claude-opus-5-5']
  const { status, results } = await report([...args, '--check', 'reply'])
  t.equal(status, 1)
  t.match(results, [{ result: 'fail', detail: /No upstream of the model "claude-opus-5-5" serves images/ }])
})

void t.test('wrong names are wrong usage', async (t) => {
  const args = ['--upstream', 'chat', '--model', 'gpt-5.4']
  for (const more of [
    ['--operation', 'drawings'],
    ['--operation', 'images,speech'],
    ['--operation', 'images', '--format', 'chat'],
    ['--operation', 'images', '--check', 'subtitles'],
    ['--check', 'subtitles'],
  ]) {
    const { status } = await rehearse(...args, ...more)
    t.equal(status, 2, more.join(' '))
  }
})

void t.test('the ceiling stops the run before a request that might exceed it', async (t) => {
  const args = ['--operation', 'images', '--upstream', 'chat', '--model', 'gpt-image-2']
  const { status, made, results } = await report([...args, '--max-cost-usd', '0.0001'])
  t.equal(status, 1)
  t.ok(results.every(({ result }) => result === 'not run'))
  t.match(made, { ok: false, cost_usd: 0 })
})
