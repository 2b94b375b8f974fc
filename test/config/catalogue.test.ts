/**
 * Goal: the shipped catalogue is complete and valid; a look-up returns the exact id, a variant, the
 * longest prefix or null; errors have line and column.
 * Method: the shipped `config/` is loaded; errors come from texts.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { arrayOf, objectOf } from '../../src/base/json.js'
import { factsFor } from '../../src/config/catalogue.js'
import { loadConfig, readCatalogue } from '../../src/config/load-config.js'
import { shippedPrices } from '../../src/config/preset-prices.js'
import { createRouter } from '../../src/gateway/routing/router.js'
import { GOOD, loadText, problemsOf } from './sample.js'

const shipped = loadConfig('config/gateway.yaml', {})

const OWN_FAMILIES = ['anthropic', 'google', 'openai']

void t.test('S4: the catalogue has 280 models of the vendors with presets, with all facts', (t) => {
  if (!shipped.ok) throw new Error(JSON.stringify(shipped.errors))
  const { models } = shipped.catalogue
  t.ok(models.length >= 280, String(models.length))
  const families = new Set(models.map(({ family }) => family))
  const vendors = ['cohere', 'dashscope', 'deepseek', 'minimax', 'mistral', 'moonshot', 'xai', 'zai']
  for (const family of [...OWN_FAMILIES, ...vendors]) t.ok(families.has(family), family)
  for (const facts of models) {
    const hasSizes = facts.contextWindow !== undefined && facts.maxOutputTokens !== undefined
    t.ok(hasSizes || facts.operations !== undefined, facts.id)
    t.ok(facts.createdAtSeconds > 1_500_000_000 && facts.createdAtSeconds < 1_800_000_000, facts.id)
  }
  t.end()
})

void t.test('the facts of the build are those of the text', (t) => {
  const text = readFileSync('config/models.yaml', 'utf8')
  const parsed = JSON.parse(readFileSync('build/src/config/shipped-catalogue.json', 'utf8')) as {
    hash: string
  }
  t.equal(parsed.hash, createHash('sha256').update(text).digest('hex'))
  const built = readCatalogue('models.yaml', text)
  const edited = readCatalogue('models.yaml', `${text}# A comment: its YAML is parsed.\n`)
  t.same(built.errors, [])
  t.same(built.catalogue?.models, edited.catalogue?.models)
  t.end()
})

void t.test('a default route of its family matches every listed model', (t) => {
  if (!shipped.ok) throw new Error(JSON.stringify(shipped.errors))
  const router = createRouter(shipped.config)
  // Entries of lists have models of vendors for which the default file has no route.
  const { models } = objectOf(parse(readFileSync('config/models.yaml', 'utf8')))
  const entries = arrayOf(models).map(objectOf)
  const own = new Set(entries.filter(({ source }) => source === undefined).map(({ id }) => id))
  t.ok(own.size >= 60, String(own.size))
  for (const facts of shipped.catalogue.models) {
    if (!own.has(facts.id)) continue
    for (const id of [facts.id, ...(facts.variants ?? [])]) {
      t.equal(router.all(id)[0]?.targets[0]?.upstream.name, facts.family, id)
      t.equal(factsFor(shipped.catalogue, id), facts, id)
    }
  }
  t.end()
})

void t.test(
  'models of pictures, sound, rankings and moderation have a price and say what they are for',
  (t) => {
    if (!shipped.ok) throw new Error(JSON.stringify(shipped.errors))
    const { catalogue } = shipped
    const of = (id: string) => catalogue.find(id) ?? { price: undefined, operations: undefined }
    const prices: readonly (readonly [string, string, object])[] = [
      [
        'gpt-image-2',
        'images',
        { input: 5, cacheRead: 1.25, inputImage: 8, cachedImage: 2, outputImage: 30 },
      ],
      ['gpt-image-2.5-sunburst', 'image_edits', { input: 5, outputImage: 30 }],
      ['gpt-image-1.5', 'images', { output: 10, outputImage: 32 }],
      ['gpt-transcribe', 'transcriptions', { perSecondAudio: 0.000075 }],
      ['whisper-1', 'translations', { perSecondAudio: 0.0001 }],
      ['gpt-4o-transcribe', 'transcriptions', { input: 2.5, inputAudio: 2.5, output: 10 }],
      ['tts-1', 'speech', { perCharacter: 0.000015 }],
      ['tts-1-hd', 'speech', { perCharacter: 0.00003 }],
      ['gpt-4o-mini-tts', 'speech', { input: 0.6, outputAudio: 12 }],
      ['gemini-3.5-transcribe', 'transcriptions', { inputAudio: 2, output: 12 }],
      ['gemini-3.8-flash-tts', 'speech', { input: 0.5, outputAudio: 9 }],
      ['voxtral-mini-2602', 'transcriptions', { perSecondAudio: 0.00005 }],
      ['voxtral-mini-tts-2603', 'speech', { perCharacter: 0.000016 }],
      ['rerank-v3.5', 'rerank', { perSearch: 0.002 }],
      ['rerank-v4.0-pro', 'rerank', { perSearch: 0.0025 }],
      ['amazon.rerank-v1:0', 'rerank', { perSearch: 0.001 }],
      ['rerank-2.5', 'rerank', { input: 0.05 }],
      ['jina-reranker-v2-base-multilingual', 'rerank', { input: 0.05 }],
      ['omni-moderation-latest', 'moderations', { input: 0 }],
      ['mistral-moderation-2603', 'moderations', { input: 0 }],
    ]
    for (const [id, operation, price] of prices) {
      t.match(of(id).price, price, id)
      t.ok(
        of(id).operations?.some((name) => name === operation),
        `${id}: ${operation}`,
      )
    }
    t.match(of('gemini-embedding-2').price, { inputImage: 0.45, inputAudio: 6.5, inputVideo: 12 })
    t.match(shippedPrices('groq')['whisper-large-v3'], { perSecondAudio: 0.00003083, minAudioSeconds: 10 })
    t.end()
  },
)

void t.test('no listed model was retired at the date of the catalogue', (t) => {
  if (!shipped.ok) throw new Error(JSON.stringify(shipped.errors))
  for (const { id, shutdownDate } of shipped.catalogue.models) {
    t.ok(shutdownDate === undefined || shutdownDate > '2026-11-20', id)
  }
  t.end()
})

void t.test('a look-up returns the exact id, a variant, the longest prefix or null', (t) => {
  const models = `as_of: 2026-11-20
models:
  - { id: gpt-5, family: openai }
  - { id: gpt-5-mini, family: openai, variants: [gpt-mini-dated] }
  - { id: gpt-5.5, family: openai }
`
  const loaded = loadText(GOOD, {}, { '/etc/sluice/models.yaml': models })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const found = (id: string) => loaded.catalogue.find(id)?.id ?? null
  t.equal(found('gpt-5'), 'gpt-5')
  t.equal(found('gpt-5-2025-08-07'), 'gpt-5')
  t.equal(found('gpt-5-mini-2025-08-07'), 'gpt-5-mini')
  t.equal(found('gpt-mini-dated'), 'gpt-5-mini')
  t.equal(found('gpt-5.5-2026-04-23'), 'gpt-5.5')
  t.equal(found('gpt-5.6'), null)
  t.equal(found('gpt-50'), null)
  t.equal(found('gpt'), null)
  t.equal(found('-'.repeat(100_000)), null)
  t.equal(found(''), null)
  t.end()
})

void t.test('an unknown id has only the facts of its family', (t) => {
  const loaded = loadText(GOOD, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const facts = (id: string) => factsFor(loaded.catalogue, id)
  t.strictSame(facts('gpt-9'), { id: 'gpt-9', family: 'openai', createdAtSeconds: 0 })
  t.equal(facts('o9-mini').family, 'openai')
  t.equal(facts('claude-9').family, 'anthropic')
  t.strictSame(facts('gemini-9'), { id: 'gemini-9', family: 'google', createdAtSeconds: 0 })
  t.match(facts('gemini-2.0-flash-001'), { family: 'google', callSignatures: false })
  t.equal(facts('gemini-2.0-flash').systemInstruction, undefined)
  t.equal(facts('gemini-20').callSignatures, undefined)
  const gemma = { family: 'google', callSignatures: false, systemInstruction: false }
  t.match(facts('gemma-3-27b-it'), gemma)
  t.equal(facts('llama-4').family, 'openai')
  t.end()
})

void t.test('facts of models.yaml are read under their names', (t) => {
  const models = `as_of: 2026-11-20
models:
  - id: m
    family: google
    created: 2026-01-02
    call_signatures: false
    system_instruction: false
    max_output_tokens_whole: 7
    stop: false
    prompt_cache_retention: false
    prompt_cache_breakpoints: true
    thinking_budget: { min: 1, max: 2, can_disable: true }
    price:
      { input: 1, output: 2, cache_read: 0.1, cache_write_1h: 3, service_tiers: { flex: 0.5 },
        long_context: { above_input_tokens: 5, input: 4, output: 6 } }
  - id: dated
    family: google
    source: own
    as_of: 2026-11-01
    price:
      - { input: 1, service_tiers: { priority: { input: 3, long_context: { above_input_tokens: 5, input: 4, output: 6 } } } }
      - { from: 2027-01-01, input: 2 }
`
  const loaded = loadText(GOOD, {}, { '/etc/sluice/models.yaml': models })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  t.strictSame(loaded.catalogue.models, [
    {
      id: 'm',
      family: 'google',
      createdAtSeconds: Date.UTC(2026, 0, 2) / 1000,
      callSignatures: false,
      systemInstruction: false,
      maxOutputTokensWhole: 7,
      stop: false,
      promptCacheRetention: false,
      promptCacheBreakpoints: true,
      thinkingBudget: { min: 1, max: 2, canDisable: true },
      price: {
        input: 1,
        output: 2,
        cacheRead: 0.1,
        cacheWrite1h: 3,
        serviceTiers: { flex: 0.5 },
        longContext: { aboveInputTokens: 5, input: 4, output: 6 },
      },
    },
    {
      id: 'dated',
      family: 'google',
      createdAtSeconds: Date.UTC(2026, 10, 20) / 1000,
      price: [
        {
          input: 1,
          serviceTiers: {
            priority: { input: 3, longContext: { aboveInputTokens: 5, input: 4, output: 6 } },
          },
        },
        { input: 2, from: '2027-01-01' },
      ],
    },
  ])
  t.end()
})

const HEAD = 'as_of: 2026-11-20\nmodels:\n'
const FAULTS: [string, string, string][] = [
  [
    'unknown key',
    `${HEAD}  - { id: a, family: openai, visoin: true }\n`,
    ':3:30: models[0].visoin: Unknown key "visoin" (did you mean "vision"?)',
  ],
  [
    'a family that is not a name',
    `${HEAD}  - { id: a, family: 'open ai' }\n`,
    ':3:22: models[0].family: must be 1 to 64 letters, digits, dots, dashes or underscores',
  ],
  ['no id', `${HEAD}  - { family: openai }\n`, ':3:5: models[0].id: is required'],
  [
    'id twice',
    `${HEAD}  - { id: a, family: openai }\n  - { id: a, family: openai }\n`,
    ':4:11: models[1].id: Duplicate id "a"',
  ],
  [
    'variant that is an id',
    `${HEAD}  - { id: a, family: openai, variants: [b, a] }\n`,
    ':3:44: models[0].variants[1]: Duplicate id "a"',
  ],
  [
    'negative price',
    `${HEAD}  - { id: a, family: openai, price: { input: -1 } }\n`,
    ':3:46: models[0].price.input: must be at least 0',
  ],
  [
    'no day',
    `${HEAD}  - { id: a, family: openai, created: 2026-02-30 }\n`,
    ':3:39: models[0].created: must be a date, as in 2026-04-23',
  ],
  ['empty list', 'as_of: 2026-11-20\nmodels: []\n', ':2:9: models: must have at least one entry'],
  ['empty file', '', ':1:1: the file is empty'],
]

for (const [rule, text, expected] of FAULTS) {
  void t.test(`an error in the catalogue has line and column: ${rule}`, (t) => {
    const [first] = problemsOf(GOOD, {}, { '/etc/sluice/models.yaml': text })
    t.equal(first, `/etc/sluice/models.yaml${expected}`)
    t.end()
  })
}
