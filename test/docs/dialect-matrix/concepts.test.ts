/**
 * Goal: the page of dialects is correct and complete: it lists every field of the format, explains
 * emulations, and no part of a request or reply is lost without a report.
 * Method: each concept is sent through each dialect, as the page's generator does; the page's signs are
 * compared by the test of generated files.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import {
  COLUMNS,
  replyOutcome,
  requestOutcome,
  translateReplyConcept,
  translateRequestConcept,
} from '../../../docs/generate/dialect-matrix/outcomes.js'
import { dialectsPage } from '../../../docs/generate/dialect-matrix/page.js'
import { REPLY_CONCEPTS, PLAIN_REPLY } from '../../../docs/generate/dialect-matrix/reply-concepts.js'
import { PLAIN_REQUEST, REQUEST_GROUPS } from '../../../src/gateway/explain/request-concepts.js'
import { factsFor } from '../../../src/config/catalogue.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { fieldsOf } from '../../../src/formats/index.js'
import { SCALAR_NAMES } from '../../../src/formats/wire/scalar-fields.js'
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
  const asked = new Set(requests.flatMap(({ members }) => Object.keys(members)))
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
      const { outcome, at, reported } = requestOutcome(concept, column, catalogue)
      const how = concept.emulated?.[column.dialect]
      const replies = `${concept.name}: ${outcome}`
      if (outcome === 'emulated') t.ok(how, `${replies} has an explanation`)
      if (how !== undefined) t.match(outcome, /^(?:kept|emulated)$/, `${replies} is there at all`)
      if (outcome === 'lost' || outcome === 'rejected') t.not(reported[0], undefined, `${replies} is named`)
      if (outcome === 'kept') t.ok(at.length > 0, `${replies} has a place`)
    }
    t.end()
  })

  void t.test(`replies of ${column.dialect}`, (t) => {
    for (const concept of REPLY_CONCEPTS) {
      const found = replyOutcome(concept, column, catalogue)
      if (found === null) continue
      const replies = `${concept.name}: ${found.outcome}`
      t.not(found.outcome, 'needless', `${replies}: content of the provider is translated or reported`)
      if (found.outcome === 'rejected') t.ok(concept.notes?.[column.dialect], `${replies} has a reason`)
    }
    t.end()
  })
}

void t.test('every loss that the code reports is shown or tested by its name', (t) => {
  const shown = new Set(
    requests.flatMap((concept) =>
      COLUMNS.flatMap((column) => requestOutcome(concept, column, catalogue).reported),
    ),
  )
  const tests = filesBelow('test', '.ts').map(({ text }) => withoutComments(text))
  const dropped = filesBelow('src/formats', '.ts').flatMap(({ text }) =>
    [...text.matchAll(/losses\.drop\(\s*'([^']+)'/g)].map((match) => match[1] ?? ''),
  )
  const rows = COLUMNS.flatMap(({ dialect }) => fieldsOf(dialect))
  for (const { canonical, loss } of rows) {
    if (loss === 'reported') dropped.push(SCALAR_NAMES[canonical])
  }
  t.ok(dropped.length > 20)
  t.same(
    [...new Set(dropped)].filter(
      (path) =>
        !shown.has(path) && !tests.some((text) => text.includes(`'${path}'`) || text.includes(`'${path}:`)),
    ),
    [],
  )
  t.end()
})

void t.test('a difference is found, and so is its absence', (t) => {
  const facts = factsFor(catalogue, 'claude-opus-5-5')
  const outcome = (members: JsonObject) =>
    translateRequestConcept(PLAIN_REQUEST, members, { dialect: 'anthropic', facts })
  t.same(outcome({ stop: ['x'] }), { outcome: 'kept', at: ['stop_sequences'], reported: [] })
  t.same(outcome({ n: 1 }), { outcome: 'needless', at: [], reported: [] })
  t.same(outcome({ seed: 1 }), { outcome: 'lost', at: [], reported: ['seed'] })
  t.same(outcome({ n: 2 }), { outcome: 'rejected', at: [], reported: ['n'] })
  t.match(outcome({ response_format: { type: 'json_object' } }), {
    outcome: 'emulated',
    reported: ['response_format'],
  })
  const plain = PLAIN_REPLY.anthropic
  const reply = (replies: typeof plain) =>
    translateReplyConcept(plain, replies, { dialect: 'anthropic', request: PLAIN_REQUEST, facts })
  t.match(reply(plain), { outcome: 'needless' })
  t.match(reply({ ...plain, content: [] }), { outcome: 'kept', at: ['choices.message.content'] })
  t.match(reply({ ...plain, stop_reason: null }), { outcome: /lost|kept/ })
  t.match(reply({ type: 'error', error: { type: 'api_error' } }), { outcome: 'rejected' })
  t.end()
})

void t.test('the page has each concept and names its source', (t) => {
  t.match(page, /^<!-- Generated from docs\/generate\/dialect-matrix .*do not edit/)
  for (const { name } of [...requests, ...REPLY_CONCEPTS]) t.ok(page.includes(`| ${name} |`), name)
  t.equal(page, readFileSync('docs/reference/dialects.md', 'utf8'))
  t.end()
})
