/**
 * Goal: a program written for Google's own client works unchanged over every upstream dialect.
 * Method: the official SDK against a whole gateway and emulated providers; each behaviour once per dialect.
 */
import {
  ApiError,
  FunctionCallingConfigMode,
  GoogleGenAI,
  type FunctionDeclaration,
  type GenerateContentResponse,
  ThinkingLevel,
  Type,
} from '@google/genai'
import t from 'tap'
import { objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { ROWS } from '../upstream-cases.js'
import { failing, LONG, PIXEL, thrownBy, upstreamIsLeft } from '../client-scenarios.js'

const gateway = await startGateway(t)
const client = clientOf(gateway.secret)
const { models } = client

function clientOf(apiKey: string): GoogleGenAI {
  return new GoogleGenAI({ apiKey, httpOptions: { baseUrl: gateway.origin } })
}

const WEATHER: FunctionDeclaration = {
  name: 'get_weather',
  description: 'The weather of a city',
  parameters: {
    type: Type.OBJECT,
    properties: {
      city: { type: Type.STRING },
      unit: { type: Type.STRING, enum: ['celsius', 'fahrenheit'] },
    },
    required: ['city', 'unit'],
  },
}
const TIME: FunctionDeclaration = { name: 'get_time', parametersJsonSchema: { type: 'object' } }
const TOOLS = { tools: [{ functionDeclarations: [WEATHER, TIME] }] }

async function all(
  stream: Promise<AsyncGenerator<GenerateContentResponse>>,
): Promise<GenerateContentResponse[]> {
  const chunks: GenerateContentResponse[] = []
  for await (const chunk of await stream) chunks.push(chunk)
  return chunks
}

function textOf(chunks: readonly GenerateContentResponse[]): string {
  return chunks
    .flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
    .map(({ text = '', thought }) => (thought === true ? '' : text))
    .join('')
}

for (const { model, dialect, reasoner, showsThinking, stops } of ROWS) {
  void t.test(`${model}: plain text, whole and streamed, is the same reply`, async (t) => {
    const ask = { model, contents: 'Grüße an Ωmega 🐋' }
    const whole = await models.generateContent(ask)
    t.match(whole.text, /Your message: “Grüße an Ωmega 🐋”$/)
    t.equal(whole.candidates?.[0]?.finishReason, 'STOP')
    t.equal(whole.candidates?.[0]?.content?.role, 'model')
    const prompt = whole.usageMetadata?.promptTokenCount ?? 0
    const output = whole.usageMetadata?.candidatesTokenCount ?? 0
    const total = whole.usageMetadata?.totalTokenCount
    t.ok(prompt > 0 && output > 0)
    t.equal(total, prompt + output)
    t.equal(whole.modelVersion, model)
    t.ok((whole.responseId ?? '') !== '')

    const chunks = await all(models.generateContentStream(ask))
    t.ok(chunks.length > 1)
    t.equal(textOf(chunks), whole.text)
    t.equal(chunks.at(-1)?.candidates?.[0]?.finishReason, 'STOP')
    t.equal(chunks.at(-1)?.usageMetadata?.totalTokenCount, total)
    t.equal(new Set(chunks.map(({ responseId }) => responseId)).size, 1, 'one id')
  })

  void t.test(`${model}: a system instruction and settings`, async (t) => {
    const { response } = await ask(model, {
      contents: 'Count me',
      config: {
        systemInstruction: 'Be brief.',
        temperature: 0.5,
        maxOutputTokens: 1_000,
        ...(stops ? { stopSequences: ['END'] } : {}),
      },
    })
    t.equal(response.candidates?.[0]?.finishReason, 'STOP')
    t.match(JSON.stringify(gateway.emulator.ledger.at(-1)?.body), /Be brief\./)
  })

  void t.test(`${model}: one call, whole and streamed, then its result`, async (t) => {
    const contents = [{ role: 'user', parts: [{ text: 'What is the weather in Paris? Use get_weather' }] }]
    const whole = await models.generateContent({ model, contents, config: TOOLS })
    const [call, none] = whole.functionCalls ?? []
    t.equal(none, undefined)
    t.equal(call?.name, 'get_weather')
    t.equal(call?.args?.['city'], 'Paris')
    t.equal(whole.candidates?.[0]?.finishReason, 'STOP', 'calls end with STOP')

    const chunks = await all(models.generateContentStream({ model, contents, config: TOOLS }))
    const streamed = chunks.flatMap(({ functionCalls = [] }) => functionCalls)
    t.same(
      streamed.map(({ name, args }) => [name, args?.['city']]),
      [['get_weather', 'Paris']],
    )

    const content = whole.candidates?.[0]?.content ?? {}
    for (const id of [call?.id, undefined]) {
      const parts = (content.parts ?? []).map((part) =>
        part.functionCall === undefined || id !== undefined
          ? part
          : { ...part, functionCall: { name: 'get_weather', args: part.functionCall.args ?? {} } },
      )
      const functionResponse = {
        ...(id === undefined ? {} : { id }),
        name: 'get_weather',
        response: { output: 'rain, 12 °C' },
      }
      const after = [...contents, { role: 'model', parts }, { role: 'user', parts: [{ functionResponse }] }]
      const answer = await models.generateContent({ model, contents: after, config: TOOLS })
      t.match(answer.text, /rain, 12 °C/, id === undefined ? 'without an id' : 'with its id')
    }
  })

  void t.test(`${model}: parallel calls in a chat, streamed`, async (t) => {
    const chat = client.chats.create({ model, config: TOOLS })
    const message = 'Call get_weather and get_time in parallel'
    const chunks = await all(chat.sendMessageStream({ message }))
    const calls = chunks.flatMap(({ functionCalls = [] }) => functionCalls)
    t.same(
      calls.map(({ name }) => name),
      ['get_weather', 'get_time'],
    )
    t.same(calls[1]?.args, {}, 'no arguments are an empty object')
    const results = [...calls].reverse().map(({ id, name = '' }) => ({
      functionResponse: {
        ...(id === undefined ? {} : { id }),
        name,
        response: { output: `${name} is done` },
      },
    }))
    const answer = await chat.sendMessage({ message: results })
    t.match(answer.text, /get_weather is done/)
    t.match(answer.text, /get_time is done/)
    t.equal(chat.getHistory(true).at(-1)?.role, 'model', 'the SDK keeps every turn')
  })

  void t.test(`${model}: modes of function calling`, async (t) => {
    const modeOf = async (config: object): Promise<GenerateContentResponse> => {
      const toolConfig = { functionCallingConfig: config }
      const contents = 'Say hello'
      return await models.generateContent({ model, contents, config: { ...TOOLS, toolConfig } })
    }
    const any = await modeOf({ mode: FunctionCallingConfigMode.ANY })
    t.ok((any.functionCalls ?? []).length > 0, 'ANY calls')
    const allowedFunctionNames = ['get_time']
    const named = await modeOf({ mode: FunctionCallingConfigMode.ANY, allowedFunctionNames })
    t.equal(named.functionCalls?.[0]?.name, 'get_time')
    const none = await modeOf({ mode: FunctionCallingConfigMode.NONE })
    t.same(none.functionCalls ?? [], [], 'NONE does not')
    const auto = await modeOf({ mode: FunctionCallingConfigMode.AUTO })
    t.match(auto.text, /Say hello/)
  })

  void t.test(`${model}: an image`, async (t) => {
    const inlineData = { mimeType: 'image/png', data: PIXEL }
    const contents = [{ role: 'user', parts: [{ text: 'What is this?' }, { inlineData }] }]
    const { text } = await models.generateContent({ model, contents })
    t.match(text, /What is this\?/)
    t.ok(JSON.stringify(gateway.emulator.ledger.at(-1)?.body).includes(PIXEL))
  })

  void t.test(`${model}: JSON in a schema`, async (t) => {
    const properties = { name: { type: Type.STRING }, age: { type: Type.INTEGER } }
    const responseSchema = { type: Type.OBJECT, properties, required: ['name', 'age'] }
    const responseMimeType = 'application/json'
    const json = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    for (const format of [{ responseSchema }, { responseJsonSchema: json }]) {
      const config = { responseMimeType, ...format }
      const { text = '' } = await models.generateContent({ model, contents: 'Ada', config })
      t.type(objectOf(JSON.parse(text))['name'], 'string')
    }
  })

  void t.test(`${reasoner}: thinking, with its state across turns`, async (t) => {
    const thinkingConfig = { thinkingLevel: ThinkingLevel.HIGH, includeThoughts: true }
    const config = { ...TOOLS, thinkingConfig }
    const chat = client.chats.create({ model: reasoner, config })
    const first = await all(chat.sendMessageStream({ message: 'Use get_weather for Rome' }))
    const parts = first.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
    const thoughts = parts.filter(({ thought }) => thought === true)
    if (showsThinking)
      t.ok(
        thoughts.some(({ text = '' }) => text !== ''),
        'thoughts are shown',
      )
    const call = parts.find(({ functionCall }) => functionCall !== undefined)?.functionCall
    if (call === undefined) throw new Error('no call')
    const functionResponse = { name: 'get_weather', response: { output: 'sunny' } }
    const message = [{ functionResponse: { ...functionResponse, id: call.id ?? '' } }]
    const second = await chat.sendMessage({ message })
    t.match(second.text, /sunny/)
    const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body)
    if (dialect !== 'openai-chat') {
      t.match(sent, /"(?:signature|thoughtSignature|encrypted_content)":"[\w+/=]{40,}"/)
      t.notMatch(sent, /c2x1aWNl/, 'and no token of the gateway')
    }
    t.ok((second.usageMetadata?.totalTokenCount ?? 0) > 0)
  })

  void t.test(`${model}: tokens are counted`, async (t) => {
    const { totalTokens = 0 } = await models.countTokens({ model, contents: 'Count these words' })
    t.ok(totalTokens > 2 && totalTokens < 50, `${totalTokens}`)
    t.match(gateway.emulator.ledger.at(-1)?.path, /countTokens|count_tokens|input_tokens/)
  })

  void t.test(`${model}: errors, before and inside a stream`, async (t) => {
    const busy = await failing(gateway.emulator, { kind: 'status', code: 429 }, () =>
      thrownBy(() => models.generateContent({ model, contents: 'Hello' })),
    )
    t.ok(busy instanceof ApiError)
    t.equal(busy instanceof ApiError ? busy.status : 0, 429)
    t.match(String(busy), /RESOURCE_EXHAUSTED/)
    t.match(String(busy), /"reason":"upstream_busy"/)
    const cut = await failing(gateway.emulator, { kind: 'error', event: 6 }, () =>
      thrownBy(() => all(models.generateContentStream({ model, contents: LONG }))),
    )
    t.match(String(cut), /"reason":"upstream_\w+"/)
  })

  void t.test(`${model}: a stream that the client aborts`, async (t) => {
    const abort = new AbortController()
    const stream = await models.generateContentStream({
      model,
      contents: LONG,
      config: { abortSignal: abort.signal },
    })
    await thrownBy(async () => {
      for await (const chunk of stream) if (chunk.text !== undefined) abort.abort()
    })
    await upstreamIsLeft(t, gateway.emulator)
  })
}

async function ask(
  model: string,
  rest: Omit<Parameters<typeof models.generateContent>[0], 'model'>,
): Promise<{ response: GenerateContentResponse }> {
  return { response: await models.generateContent({ model, ...rest }) }
}

void t.test('several candidates, whole and streamed', async (t) => {
  for (const model of ['gpt-4o', 'gemini-2.5-flash']) {
    const ask = { model, contents: 'Hello', config: { candidateCount: 2 } }
    const { candidates = [], usageMetadata } = await models.generateContent(ask)
    t.same(
      candidates.map(({ index, finishReason }) => [index, finishReason]),
      [
        [0, 'STOP'],
        [1, 'STOP'],
      ],
      model,
    )
    t.ok(candidates.every(({ content }) => (content?.parts?.[0]?.text ?? '') !== ''))
    t.ok((usageMetadata?.candidatesTokenCount ?? 0) > 0)
  }
  const chunks = await all(
    models.generateContentStream({
      model: 'gpt-4o',
      contents: 'Hi',
      config: { candidateCount: 2 },
    }),
  )
  const ended = chunks.flatMap(({ candidates = [] }) => candidates)
  t.same(
    ended.filter(({ finishReason }) => finishReason !== undefined).map(({ index }) => index),
    [0, 1],
  )
  t.ok((chunks.at(-1)?.usageMetadata?.totalTokenCount ?? 0) > 0)
  const refused = await thrownBy(() =>
    models.generateContent({
      model: 'claude-haiku-4-5',
      contents: 'Hello',
      config: { candidateCount: 2 },
    }),
  )
  t.match(String(refused), /generationConfig\.candidateCount/)
})

void t.test('a wrong key and an unknown model', async (t) => {
  const unauthorized = clientOf('sk_unknown')
  const denied = await thrownBy(() =>
    unauthorized.models.generateContent({ model: 'gpt-4o', contents: 'Hello' }),
  )
  t.equal(denied instanceof ApiError ? denied.status : 0, 401)
  t.match(String(denied), /UNAUTHENTICATED/)
  const unknown = await thrownBy(() => models.generateContent({ model: 'unknown-1', contents: 'Hello' }))
  t.equal(unknown instanceof ApiError ? unknown.status : 0, 404)
  t.match(String(unknown), /NOT_FOUND/)
})
