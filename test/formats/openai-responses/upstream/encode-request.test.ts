/**
 * Goal: every field of a request is mapped, reported or refused as specified.
 * Method: one field at a time, compared with the body, the losses or the error.
 */
import t from 'tap'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import { upstreamCodec, encode, refusalOf, request, PLAIN_MODEL, REASONING_MODEL } from '../driver.js'

void t.test('a minimal request', (t) => {
  t.strictSame(encode({}).body, {
    model: 'gpt-test',
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }],
    store: false,
    include: ['reasoning.encrypted_content'],
  })
  t.same(encode({}).lost, [])
  t.strictSame(encode({ stream: true }, PLAIN_MODEL).body, {
    model: 'gpt-test',
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }],
    store: false,
    stream: true,
  })
  t.end()
})

void t.test('each field has its member in the body', (t) => {
  const rows: [members: Partial<ChatRequest>, body: object][] = [
    [{ maxOutputTokens: 500 }, { max_output_tokens: 500 }],
    [{ verbosity: 'low' }, { text: { verbosity: 'low' } }],
    [{ userId: 'u-1' }, { safety_identifier: 'u-1' }],
    [{ serviceTier: 'flex' }, { service_tier: 'flex' }],
    [{ responseFormat: { type: 'text' } }, { text: { format: { type: 'text' } } }],
    [{ responseFormat: { type: 'json-object' } }, { text: { format: { type: 'json_object' } } }],
    [{ rest: { store: true } }, { store: true }],
    [{ rest: { metadata: { a: 'b' } } }, { metadata: { a: 'b' } }],
    [{ rest: { moderation: { x: 1 } } }, { moderation: { x: 1 } }],
    [{ rest: { prompt_cache_key: 'k' } }, { prompt_cache_key: 'k' }],
    [{ rest: { prompt_cache_retention: '24h' } }, { prompt_cache_retention: '24h' }],
    [{ reasoningEffort: 'high' }, { reasoning: { effort: 'high' } }],
    [
      { reasoningEffort: 'low', rest: { reasoning: { summary: 'auto', effort: 'low' } } },
      { reasoning: { effort: 'low', summary: 'auto' } },
    ],
    [
      { rest: { web_search_options: { search_context_size: 'low' } } },
      { tools: [{ type: 'web_search', search_context_size: 'low' }] },
    ],
    [
      {
        rest: {
          web_search_options: {
            user_location: { type: 'approximate', approximate: { city: 'Ribe', country: 'DK' } },
          },
        },
      },
      {
        tools: [
          {
            type: 'web_search',
            user_location: { type: 'approximate', city: 'Ribe', country: 'DK' },
          },
        ],
      },
    ],
  ]
  for (const [members, body] of rows) {
    const encoded = encode(members)
    t.match(encoded.body, body, JSON.stringify(members))
    t.same(encoded.lost, [], JSON.stringify(members))
  }
  t.end()
})

void t.test('a JSON schema is flat, and strict only if the request is', (t) => {
  const schema = { type: 'object', properties: {} }
  const format = (strict?: boolean): unknown => {
    const responseFormat = { type: 'json-schema', name: 'log', schema } as const
    const members = strict === undefined ? responseFormat : { ...responseFormat, strict }
    return encode({ responseFormat: members }).body['text']
  }
  t.strictSame(format(), { format: { type: 'json_schema', name: 'log', schema, strict: false } })
  t.match(format(true), { format: { strict: true } })
  t.end()
})

void t.test('the nearest supported value is sent', (t) => {
  t.match(encode({ maxOutputTokens: 5 }), {
    body: { max_output_tokens: 16 },
    lost: ['max_completion_tokens: approximated'],
  })
  t.same(encode({ maxOutputTokens: 16 }).lost, [])
  t.match(encode({ reasoningEffort: 'max' }), {
    body: { reasoning: { effort: 'xhigh' } },
    lost: ['reasoning_effort: approximated'],
  })
  t.match(encode({ reasoningEffort: 'minimal' }).body, { reasoning: { effort: 'none' } })
  const deep = { ...REASONING_MODEL, reasoningEfforts: ['medium', 'high'] }
  t.match(encode({ reasoningEffort: 'none' }, deep).body, { reasoning: { effort: 'medium' } })
  const unknown: ModelFacts = { id: 'new', family: 'openai', createdAtSeconds: 0 }
  t.match(encode({ reasoningEffort: 'max' }, unknown).body, { reasoning: { effort: 'max' } })
  t.end()
})

void t.test('sampling parameters are sent only to models that accept them', (t) => {
  const members = { temperature: 0.5, topP: 0.9 }
  t.match(encode(members, PLAIN_MODEL), { body: { temperature: 0.5, top_p: 0.9 }, lost: [] })
  const dropped = encode(members)
  t.same(dropped.lost, ['temperature: no-equivalent', 'top_p: no-equivalent'])
  t.notOk('temperature' in dropped.body)
  t.match(encode({ ...members, reasoningEffort: 'none' }), { body: { temperature: 0.5 }, lost: [] })
  const never = { ...REASONING_MODEL, samplingParams: 'never' } as const
  t.same(encode({ temperature: 1, topP: 1 }, never).lost, [], 'the default value')
  t.same(encode({ temperature: 0, reasoningEffort: 'none' }, never).lost, ['temperature: no-equivalent'])
  t.end()
})

void t.test('fields without an equivalent are reported', (t) => {
  const rows: [members: Partial<ChatRequest>, lost: string[]][] = [
    [{ seed: 7 }, ['seed']],
    [{ frequencyPenalty: 0.1 }, ['frequency_penalty']],
    [{ presencePenalty: -1 }, ['presence_penalty']],
    [{ frequencyPenalty: 0, presencePenalty: 0 }, []],
    [{ serviceTier: 'on_demand' }, ['service_tier']],
    [{ rest: { logit_bias: { '1': 5 } } }, ['logit_bias']],
    [{ rest: { logit_bias: {} } }, []],
    [{ rest: { previous_response_id: 'resp_1' } }, ['previous_response_id']],
    [{ rest: { reasoning: { max_tokens: 100 } } }, ['reasoning.max_tokens']],
    [{ rest: { unheard_of: 1 } }, ['unheard_of']],
    [{ rest: { prediction: { type: 'content' }, modalities: ['text'], store: false } }, []],
    [{ logprobs: true, topLogprobs: 2 }, ['logprobs', 'top_logprobs']],
    [{ logprobs: false, stop: [''], candidates: 1 }, []],
  ]
  for (const [members, lost] of rows) {
    const names = encode(members).lost.map((line) => line.replace(': no-equivalent', ''))
    t.same(names, lost, JSON.stringify(members))
  }
  t.end()
})

void t.test('a field that the model refuses is omitted', (t) => {
  const rest = { prompt_cache_retention: '24h' }
  const encoded = encode({ rest }, { ...REASONING_MODEL, promptCacheRetention: false })
  t.notOk('prompt_cache_retention' in encoded.body)
  t.same(encoded.lost, [])
  t.end()
})

void t.test('a long reply is requested as a stream', (t) => {
  t.equal(upstreamCodec.streamsWhole?.(request(), REASONING_MODEL), true)
  t.equal(upstreamCodec.streamsWhole?.(request(), PLAIN_MODEL), false)
  t.end()
})

void t.test('token probabilities are requested from models that return them', (t) => {
  const { body, lost } = encode({ logprobs: true, topLogprobs: 2 }, PLAIN_MODEL)
  t.same(body['include'], ['message.output_text.logprobs'])
  t.equal(body['top_logprobs'], 2)
  t.same(lost, [])
  const thinker = encode({ logprobs: true, reasoningEffort: 'none' }).body
  t.same(thinker['include'], ['reasoning.encrypted_content', 'message.output_text.logprobs'])
  t.notOk('top_logprobs' in thinker)
  t.end()
})

void t.test('a model without reasoning gets no reasoning fields', (t) => {
  const members = encode({ reasoningEffort: 'low', rest: { reasoning: { summary: 'auto' } } }, PLAIN_MODEL)
  t.notOk('reasoning' in members.body)
  t.notOk('include' in members.body)
  t.same(members.lost, ['reasoning_effort: no-equivalent', 'reasoning: no-equivalent'])
  t.same(encode({ reasoningEffort: 'none' }, PLAIN_MODEL).lost, [])
  t.end()
})

void t.test('fields that change the reply are refused by name', (t) => {
  const rows: [members: Partial<ChatRequest>, param: string][] = [
    [{ stop: ['END'] }, 'stop'],
    [{ candidates: 2 }, 'n'],
    [{ rest: { audio: { voice: 'x' } } }, 'audio'],
    [{ rest: { modalities: ['text', 'audio'] } }, 'modalities'],
    [
      {
        messages: [{ role: 'user', index: 3, parts: [{ type: 'audio', format: 'wav', data: 'AAAA' }] }],
      },
      'messages[3].content',
    ],
  ]
  for (const [members, param] of rows) {
    const error = refusalOf(() => encode(members))
    t.match(error, { kind: 'untranslatable', param }, param)
    t.ok(error.message.startsWith(`${param}: `), error.message)
  }
  t.end()
})

void t.test('equal requests give equal bytes', (t) => {
  const members: Partial<ChatRequest> = {
    tools: [{ name: 'b' }, { name: 'a' }],
    rest: { metadata: { z: '1', a: '2' } },
  }
  t.equal(JSON.stringify(encode(members).body), JSON.stringify(encode(members).body))
  t.match(encode(members).body, { tools: [{ name: 'b' }, { name: 'a' }] })
  t.end()
})
