/**
 * Goal: the page of dialects is true and whole: every field of the format is on it, what is emulated says
 * how, and nothing that is asked or answered vanishes unreported.
 * Method: each concept is sent through each dialect, as the page's generator does; the page's signs are
 * compared by the test of generated files.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { JsonObject } from '../../../src/chat/json.js'
import {
  COLUMNS,
  dialectsPage,
  fateOfReply,
  fateOfRequest,
  PLAIN_REQUEST,
} from '../../../src/documentation/dialect-matrix/page.js'
import { replyFate, requestFate } from '../../../src/documentation/dialect-matrix/fate.js'
import { PLAIN_REPLY, REPLY_CONCEPTS } from '../../../src/documentation/dialect-matrix/replies.js'
import { REQUEST_GROUPS } from '../../../src/documentation/dialect-matrix/requests.js'
import { factsFor } from '../../../src/config/catalogue.js'
import { loadConfig } from '../../../src/config/load.js'
import { filesBelow, withoutComments } from '../../architecture/source-tree.js'

const loaded = loadConfig('config/gateway.yaml', {})
if (!loaded.ok) throw new Error('config/gateway.yaml is not good')
const { catalogue } = loaded
const requests = REQUEST_GROUPS.flatMap(({ concepts }) => concepts)
const page = dialectsPage(catalogue)

/** The request fields of OpenAI's reference, "Create chat completion". */
const FIELDS =
  'messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options'

void t.test('every field of the format has a concept', (t) => {
  const asked = new Set(requests.flatMap(({ ask }) => Object.keys(ask)))
  const missing = FIELDS.split(' ').filter((field) => !asked.has(field))
  t.same(
    missing.filter((field) => !page.includes(`\`${field}\``)),
    [],
    'those that mean the same as another are named with it',
  )
  const names = [...requests, ...REPLY_CONCEPTS].map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  t.end()
})

for (const column of COLUMNS) {
  void t.test(`requests to ${column.dialect}`, (t) => {
    for (const concept of requests) {
      const { fate, at, reported } = fateOfRequest(concept, column, catalogue)
      const how = concept.emulated?.[column.dialect]
      const said = `${concept.name}: ${fate}`
      if (fate === 'emulated') t.ok(how, `${said} says how`)
      if (how !== undefined) t.match(fate, /^(?:kept|emulated)$/, `${said} is there at all`)
      if (fate === 'lost' || fate === 'rejected') t.not(reported[0], undefined, `${said} is named`)
      if (fate === 'kept') t.ok(at.length > 0, `${said} has a place`)
    }
    t.end()
  })

  void t.test(`replies of ${column.dialect}`, (t) => {
    for (const concept of REPLY_CONCEPTS) {
      const found = fateOfReply(concept, column, catalogue)
      if (found === null) continue
      const said = `${concept.name}: ${found.fate}`
      t.not(found.fate, 'needless', `${said}: what a provider says is told or reported`)
      if (found.fate === 'rejected') t.ok(concept.notes?.[column.dialect], `${said} says why`)
    }
    t.end()
  })
}

void t.test('every loss that the code reports is shown or tested by its name', (t) => {
  const shown = new Set(
    requests.flatMap((concept) =>
      COLUMNS.flatMap((column) => fateOfRequest(concept, column, catalogue).reported),
    ),
  )
  const tests = filesBelow('test', '.ts').map(({ text }) => withoutComments(text))
  const dropped = filesBelow('src/dialects', '.ts').flatMap(({ text }) =>
    [...text.matchAll(/losses\.drop\(\s*'([^']+)'/g)].map((match) => match[1] ?? ''),
  )
  t.ok(dropped.length > 20)
  t.same(
    [...new Set(dropped)].filter(
      (path) => !shown.has(path) && !tests.some((text) => text.includes(`'${path}'`)),
    ),
    [],
  )
  t.end()
})

void t.test('a difference is found, and so is its absence', (t) => {
  const facts = factsFor(catalogue, 'claude-opus-5-5')
  const fate = (ask: JsonObject) => requestFate(PLAIN_REQUEST, ask, 'anthropic', facts)
  t.same(fate({ stop: ['x'] }), { fate: 'kept', at: ['stop_sequences'], reported: [] })
  t.same(fate({ n: 1 }), { fate: 'needless', at: [], reported: [] })
  t.same(fate({ seed: 1 }), { fate: 'lost', at: [], reported: ['seed'] })
  t.same(fate({ n: 2 }), { fate: 'rejected', at: [], reported: ['n'] })
  t.match(fate({ response_format: { type: 'json_object' } }), {
    fate: 'emulated',
    reported: ['response_format'],
  })
  const plain = PLAIN_REPLY.anthropic
  const reply = (said: typeof plain) => replyFate(plain, said, 'anthropic', PLAIN_REQUEST, facts)
  t.match(reply(plain), { fate: 'needless' })
  t.match(reply({ ...plain, content: [] }), { fate: 'kept', at: ['choices.message.content'] })
  t.match(reply({ ...plain, stop_reason: null }), { fate: /lost|kept/ })
  t.match(reply({ type: 'error', error: { type: 'api_error' } }), { fate: 'rejected' })
  t.end()
})

void t.test('the page has each concept and says what it is made from', (t) => {
  t.match(page, /^<!-- Generated from src\/documentation\/dialect-matrix .*do not edit/)
  for (const { name } of [...requests, ...REPLY_CONCEPTS]) t.ok(page.includes(`| ${name} |`), name)
  t.equal(page, readFileSync('docs/reference/dialects.md', 'utf8'))
  t.end()
})
