/**
 * Goal: no recorded reply is charged for fewer tokens than its provider counted.
 * Method: the total of each recording, found by the names of its counts, against the usage that the gateway
 * reads from the same bytes. Skipped without recordings.
 */
import { readdirSync } from 'node:fs'
import t from 'tap'
import { isObject, type JsonValue } from '../../../src/base/json.js'
import type { Usage } from '../../../src/formats/chat/usage.js'
import type { DialectName, UpstreamCodec } from '../../../src/formats/dialect.js'
import { UPSTREAM_CODECS } from '../../../src/formats/index.js'
import { eventsOf } from '../../helpers/collect.js'
import { fixtures, fixturesFolder, skipWithoutFixtures, type Recording } from '../../helpers/fixtures.js'

const DIALECTS: Readonly<Record<string, DialectName>> = {
  'chat.completions': 'openai-chat',
  responses: 'openai-responses',
  messages: 'anthropic',
  generateContent: 'gemini',
}

/** The largest value of a count in the text of a reply. */
function largest(body: string, name: string): number {
  const found = [...body.matchAll(new RegExp(`"${name}"\\s*:\\s*(\\d+)`, 'g'))]
  return Math.max(0, ...found.map(([, count]) => Number(count)))
}

/** The tokens that the provider counted, without those of an advisor, which is another model. */
function billed(dialect: DialectName, whole: string): number {
  const body = whole.slice(Math.max(0, whole.indexOf('"usage'))).replace(/"iterations"\s*:\s*\[[^\]]*\]/g, '')
  if (dialect === 'gemini') return largest(body, 'totalTokenCount')
  if (dialect !== 'anthropic') return largest(body, 'total_tokens')
  const names = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens']
  return names.reduce((sum, name) => sum + largest(body, name), 0)
}

function usageOf(codec: UpstreamCodec, { stream, response_body: body }: Recording): Usage | null {
  if (!stream) {
    const value = JSON.parse(body) as JsonValue
    return isObject(value) ? (codec.replyFacts?.(value).usage ?? null) : null
  }
  const watcher = codec.newWatcher?.({ includeUsage: true })
  for (const { name, data } of eventsOf(body)) {
    watcher?.frame(name, Buffer.from(data).toString('latin1'))
  }
  return watcher?.usage ?? null
}

void t.test('every recording', skipWithoutFixtures(), (t) => {
  let compared = 0
  for (const provider of readdirSync(fixturesFolder() ?? '.')) {
    for (const recording of fixtures({ provider, status: 200 })) {
      const dialect = DIALECTS[recording.api]
      const codec = UPSTREAM_CODECS.find((each) => each.dialect === dialect)?.upstreamCodec
      if (dialect === undefined || codec === undefined) continue
      const count = billed(dialect, recording.response_body)
      // Google sends a stream as one JSON array, too.
      if (count === 0 || (recording.stream && !recording.response_body.includes('data:'))) continue
      const usage = usageOf(codec, recording)
      const charged = (usage?.input ?? 0) + (usage?.output ?? 0)
      compared += 1
      if (charged < count) t.fail(`${provider}/${recording.name}: ${charged} of ${count}`)
    }
  }
  t.ok(compared > 100, String(compared))
  t.end()
})
