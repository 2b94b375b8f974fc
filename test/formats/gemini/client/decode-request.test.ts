/**
 * Goal: each field of a generateContent request is checked, named in its error, and decoded to its canonical
 * form. Method: tables of valid bodies with the expected requests, and of invalid bodies with the expected
 * path.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import { reportNative } from '../../../../src/formats/dialect.js'
import { decodeCount, decodeRequest } from '../../../../src/formats/gemini/client/decode-request.js'
import { outputEdit } from '../../../../src/formats/gemini/passthrough.js'
import { GatewayError } from '../../../../src/errors.js'
import { call, decoded, ENDPOINT, HELLO, modelContent, result } from './requests.js'

function configured(generationConfig: JsonObject): ChatRequest {
  return decoded({ generationConfig })
}

void t.test('a minimal request', (t) => {
  t.match(decoded({}), {
    model: 'm',
    stream: false,
    includeUsage: false,
    hidesThoughts: true,
    messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text: 'Hello' }] }],
    tools: [],
    rest: {},
  })
  t.match(decodeRequest({ contents: HELLO }, { ...ENDPOINT, stream: true }), {
    stream: true,
    includeUsage: true,
  })
  t.equal(decodeRequest({ contents: ['Hello'] }, { ...ENDPOINT, model: 'models/x' }).model, 'x')
  t.match(decoded({}, [{ parts: { text: 'One' } }]).messages, [{ parts: [{ text: 'One' }] }])
  t.end()
})

void t.test('a system instruction as text, parts or content', (t) => {
  const forms: JsonValue[] = [
    'Be brief.',
    { text: 'Be brief.' },
    [{ text: 'Be brief.' }],
    { parts: { text: 'Be brief.' } },
    { role: 'user', parts: [{ text: 'Be brief.' }, { text: '' }] },
  ]
  for (const form of forms) {
    for (const key of ['systemInstruction', 'system_instruction']) {
      t.match(decoded({ [key]: form }).messages[0], {
        role: 'system',
        parts: [{ type: 'text', text: 'Be brief.' }],
      })
    }
  }
  t.end()
})

void t.test('generationConfig in both spellings', (t) => {
  const camel = {
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    maxOutputTokens: 100,
    stopSequences: ['a', 'b'],
    candidateCount: 2,
    seed: 7,
    presencePenalty: 0.1,
    frequencyPenalty: -0.1,
    responseLogprobs: true,
    logprobs: 3,
    thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true },
  }
  const snake = {
    temperature: 0.5,
    top_p: 0.9,
    top_k: '40',
    max_output_tokens: 100,
    stop_sequences: ['a', 'b'],
    candidate_count: 2,
    seed: 7,
    presence_penalty: 0.1,
    frequency_penalty: -0.1,
    response_logprobs: true,
    logprobs: 3,
    thinking_config: { thinking_level: 'high', include_thoughts: true },
  }
  const expected = {
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    maxOutputTokens: 100,
    stop: ['a', 'b'],
    candidates: 2,
    seed: 7,
    presencePenalty: 0.1,
    frequencyPenalty: -0.1,
    logprobs: true,
    topLogprobs: 3,
    reasoningEffort: 'high',
    hidesThoughts: false,
    rest: {},
  }
  t.match(configured(camel), expected)
  t.match(decoded({ generation_config: snake }), expected)
  t.equal(configured(camel).native, undefined, 'no field is native')
  t.end()
})

void t.test('thinking budgets as efforts', (t) => {
  const budgets: [number, string | undefined][] = [
    [0, 'none'],
    [-1, undefined],
    [512, 'minimal'],
    [2_048, 'low'],
    [8_192, 'medium'],
    [24_576, 'high'],
  ]
  for (const [thinkingBudget, effort] of budgets) {
    const { reasoningEffort } = configured({ thinkingConfig: { thinkingBudget } })
    t.equal(reasoningEffort, effort, `${thinkingBudget}`)
  }
  t.end()
})

void t.test('response formats', (t) => {
  const schema = { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true } } }
  const json = { type: 'object', properties: { a: { type: ['string', 'null'] } } }
  const responseMimeType = 'application/json'
  const format = (config: JsonObject): unknown => configured(config).responseFormat
  t.same(format({ responseMimeType, responseSchema: schema }), {
    type: 'json-schema',
    name: 'response',
    schema: json,
  })
  t.same(format({ responseMimeType, responseJsonSchema: json }), {
    type: 'json-schema',
    name: 'response',
    schema: json,
  })
  const closed = {
    type: 'object',
    properties: { a: {} },
    required: ['a'],
    additionalProperties: false,
  }
  t.match(format({ responseMimeType, responseJsonSchema: closed }), { strict: true }, 'as Google enforces it')
  t.same(format({ responseMimeType }), { type: 'json-object' })
  t.same(format({ responseMimeType: 'text/plain' }), undefined)
  t.same(configured({ responseMimeType: 'text/x.enum' }).native, [
    { path: 'generationConfig.responseMimeType' },
  ])
  t.end()
})

void t.test('fields that only Gemini upstreams accept are recorded as lost or refused', (t) => {
  const native = (body: JsonObject): unknown =>
    decoded(body).native?.map(({ path, refusal }) => [path, refusal !== undefined])
  const block = { category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_LOW_AND_ABOVE' }
  t.same(native({ safetySettings: [block] }), [['safetySettings', false]])
  for (const threshold of ['OFF', 'BLOCK_NONE']) {
    t.same(native({ safetySettings: [{ ...block, threshold }] }), [['safetySettings', false]])
  }
  t.same(native({ safetySettings: [] }), undefined)
  t.same(native({ labels: { team: 'a' } }), [['labels', false]])
  t.same(native({ cachedContent: 'cachedContents/x' }), [['cachedContent', true]])
  t.same(native({ tools: [{ googleSearch: {} }] }), [['tools[0].googleSearch', true]])
  t.same(native({ tools: { code_execution: {} } }), [['tools.codeExecution', true]])
  t.same(native({ somethingNew: 1 }), [['somethingNew', false]])
  t.same(native({ generationConfig: { speechConfig: {} } }), [['generationConfig.speechConfig', false]])
  t.end()
})

void t.test('tools and the tool choice', (t) => {
  const parameters = { type: 'OBJECT', properties: { a: { type: 'INTEGER', minimum: 1 } } }
  const functionDeclarations = [
    { name: 'one', description: 'First', parameters },
    { name: 'two.b', parametersJsonSchema: { type: 'object' } },
  ]
  const tools = [{ functionDeclarations }]
  t.same(decoded({ tools }).tools, [
    {
      name: 'one',
      description: 'First',
      parameters: { type: 'object', properties: { a: { type: 'integer', minimum: 1 } } },
    },
    { name: 'two.b', parameters: { type: 'object' } },
  ])
  const choices: [JsonObject, unknown][] = [
    [{ mode: 'AUTO' }, { mode: 'auto' }],
    [{ mode: 'NONE' }, { mode: 'none' }],
    [{ mode: 'ANY' }, { mode: 'required' }],
    [{ mode: 'any' }, { mode: 'required' }],
    [
      { mode: 'ANY', allowedFunctionNames: ['one'] },
      { mode: 'named', name: 'one' },
    ],
    [
      { mode: 'ANY', allowed_function_names: ['one', 'two.b'] },
      { mode: 'allowed', required: true, names: ['one', 'two.b'] },
    ],
    [
      { mode: 'VALIDATED', allowedFunctionNames: ['one'] },
      { mode: 'allowed', required: false, names: ['one'] },
    ],
    [{ mode: 'VALIDATED' }, { mode: 'auto' }],
    [{}, undefined],
  ]
  for (const [functionCallingConfig, expected] of choices) {
    const { toolChoice } = decoded({ tools, toolConfig: { functionCallingConfig } })
    t.same(toolChoice, expected, JSON.stringify(functionCallingConfig))
  }
  t.end()
})

void t.test('an invalid field is refused with its path', (t) => {
  const bad: [JsonObject, string][] = [
    [{ contents: [] }, 'contents'],
    [{ contents: [{ role: 'system', parts: [{ text: 'x' }] }] }, 'contents[0].role'],
    [{ contents: [{ parts: [{ text: 1 }] }] }, 'contents[0].parts[0].text'],
    [{ contents: [{ parts: ['x'] }] }, 'contents[0].parts[0]'],
    [{ contents: [{ parts: [{ text: 'x', inlineData: {} }] }] }, 'contents[0].parts[0]'],
    [
      { contents: [{ parts: [{ inlineData: { mimeType: 'x', data: 'aa' } }] }] },
      'contents[0].parts[0].inlineData.mimeType',
    ],
    [
      { contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: '' } }] }] },
      'contents[0].parts[0].inlineData.data',
    ],
    [{ contents: [{ parts: [call('a')] }] }, 'contents[0].parts[0]'],
    [{ contents: [HELLO, modelContent(call('a'))] }, 'contents[1].parts[0].functionCall'],
    [{ contents: [HELLO, modelContent(call(''))] }, 'contents[1].parts[0].functionCall.name'],
    [
      { contents: [HELLO, modelContent(call('a', { id: 'x' }), call('a', { id: 'x' }))] },
      'contents[1].parts[0].functionCall',
    ],
    [{ contents: [{ parts: [result('a', {})] }] }, 'contents[0].parts[0].functionResponse'],
    [
      { contents: [{ parts: [{ text: 'x', thoughtSignature: 5 }] }] },
      'contents[0].parts[0].thoughtSignature',
    ],
    [{ contents: [HELLO], systemInstruction: { parts: [call('a')] } }, 'systemInstruction.parts[0]'],
    [
      { contents: [HELLO], tools: [{ functionDeclarations: [{ name: '' }] }] },
      'tools[0].functionDeclarations[0].name',
    ],
    [
      { contents: [HELLO], tools: [{ functionDeclarations: [{ name: 'a' }, { name: 'a' }] }] },
      'tools[0].functionDeclarations[1].name',
    ],
    [
      { contents: [HELLO], toolConfig: { functionCallingConfig: { mode: 'SOME' } } },
      'toolConfig.functionCallingConfig.mode',
    ],
    [
      {
        contents: [HELLO],
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a'] } },
      },
      'toolConfig.functionCallingConfig.allowedFunctionNames[0]',
    ],
    [{ contents: [HELLO], safetySettings: [{ category: 'X' }] }, 'safetySettings[0].threshold'],
    [{ contents: [HELLO], labels: { a: 1 } }, 'labels.a'],
    [{ contents: [HELLO], serviceTier: 'GOLD' }, 'serviceTier'],
    [{ contents: [HELLO], generationConfig: {}, generation_config: {} }, 'generationConfig'],
  ]
  const settings: [JsonObject, string][] = [
    [{ temperature: 3 }, 'temperature'],
    [{ topP: 2 }, 'topP'],
    [{ topK: 0 }, 'topK'],
    [{ maxOutputTokens: 0 }, 'maxOutputTokens'],
    [{ maxOutputTokens: '1e3' }, 'maxOutputTokens'],
    [{ stopSequences: [1] }, 'stopSequences[0]'],
    [{ candidateCount: 9 }, 'candidateCount'],
    [{ seed: 2 ** 31 }, 'seed'],
    [{ presencePenalty: 3 }, 'presencePenalty'],
    [{ responseLogprobs: 1 }, 'responseLogprobs'],
    [{ logprobs: 21 }, 'logprobs'],
    [{ thinkingConfig: { thinkingLevel: 'HUGE' } }, 'thinkingConfig.thinkingLevel'],
    [{ thinkingConfig: { thinkingLevel: 'LOW', thinkingBudget: 1 } }, 'thinkingConfig'],
    [{ thinkingConfig: { includeThoughts: 'yes' } }, 'thinkingConfig.includeThoughts'],
    [{ responseSchema: 'x' }, 'responseSchema'],
    [{ responseSchema: {}, responseJsonSchema: {} }, ''],
    [{ responseModalities: [1] }, 'responseModalities[0]'],
  ]
  const all: [JsonObject, string][] = [
    ...bad,
    ...settings.map(([generationConfig, path]): [JsonObject, string] => [
      { contents: [HELLO], generationConfig },
      path === '' ? 'generationConfig' : `generationConfig.${path}`,
    ]),
  ]
  for (const [body, path] of all) {
    try {
      reportNative(decodeRequest(body, ENDPOINT), { drop: () => undefined })
      t.fail(`${path} was taken: ${JSON.stringify(body)}`)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      t.equal(error.wire.param, path)
      t.equal(error.kind, 'malformed_request')
      t.ok(error.message.startsWith(path), error.message)
    }
  }
  t.end()
})

void t.test('an output limit keeps the spelling of generationConfig', (t) => {
  const limited = (body: JsonObject): unknown => {
    const { key, json } = outputEdit(body, 3)
    return { [key]: JSON.parse(String(json)) as unknown }
  }
  t.same(limited({}), { generationConfig: { maxOutputTokens: 3 } })
  t.same(limited({ generationConfig: { topP: 1, maxOutputTokens: 9 } }), {
    generationConfig: { topP: 1, maxOutputTokens: 3 },
  })
  t.same(limited({ generation_config: { top_p: 1, max_output_tokens: 9 } }), {
    generation_config: { top_p: 1, max_output_tokens: 3 },
  })
  t.end()
})

void t.test('requests that count tokens', (t) => {
  const at = { operation: 'count', model: 'm' } as const
  const expected = { messages: [{ role: 'user', parts: [{ text: 'Hello' }] }] }
  t.match(decodeCount({ contents: [HELLO] }, at), expected)
  const generateContentRequest = { model: 'models/m', contents: [HELLO], tools: [] }
  t.match(decodeCount({ generateContentRequest }, at), expected)
  t.match(decodeCount({ generate_content_request: generateContentRequest }, at), expected)
  t.throws(() => decodeCount({ generateContentRequest, contents: [HELLO] }, at), {
    message: /^contents must not/,
  })
  t.throws(() => decodeCount({ generateContentRequest: { contents: [] } }, at), {
    message: /^generateContentRequest\.contents must/,
  })
  t.end()
})
