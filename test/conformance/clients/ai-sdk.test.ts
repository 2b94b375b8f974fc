/**
 * Goal: a program written for Vercel's `ai` works over every upstream dialect as over OpenAI itself.
 * Method: `@ai-sdk/openai-compatible` against a whole gateway and emulated providers; each case per row.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateObject, generateText, Output, stepCountIs, streamObject, streamText } from 'ai'
import t from 'tap'
import * as z from 'zod'
import { startGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'
import { ROWS } from '../upstream-cases.js'
import { failing, LONG, PIXEL, thrownBy, upstreamIsLeft } from '../client-scenarios.js'
import { recordingTools } from './ai-sdk-tools.js'

const gateway = await startGateway(t)
const { emulator } = gateway
const sluice = createOpenAICompatible({
  name: 'sluice',
  baseURL: gateway.baseUrl,
  apiKey: gateway.secret,
  includeUsage: true,
  supportsStructuredOutputs: true,
})
const maxRetries = 0

const PERSON = z.object({
  name: z.string(),
  age: z.number().int(),
  tags: z.array(z.enum(['red', 'green'])),
})

for (const row of ROWS) {
  const model = sluice(row.model)
  const reasoner = sluice(row.reasoner)

  void t.test(`${row.dialect}: generateText and streamText return the same`, async (t) => {
    const prompt = 'Grüße an Ωmega 🐋'
    const whole = await generateText({ model, prompt, maxRetries })
    t.match(whole.text, /Your message: “Grüße an Ωmega 🐋”$/)
    t.equal(whole.finishReason, 'stop')
    const streamed = streamText({ model, prompt, maxRetries })
    let text = ''
    for await (const delta of streamed.textStream) text += delta
    t.equal(text, whole.text)
    t.equal(await streamed.finishReason, 'stop')
    const { inputTokens, outputTokens } = await streamed.usage
    t.same([inputTokens, outputTokens], [whole.usage.inputTokens, whole.usage.outputTokens])
    t.ok(Number(inputTokens) > 0 && Number(outputTokens) > 0, 'and count the same')
    t.same(whole.warnings ?? [], [], 'nothing the client had to leave out')
  })

  void t.test(`${row.dialect}: tools in several steps, whole and streamed`, async (t) => {
    for (const each of [model, reasoner]) {
      const prompt = 'Use get_time, then get_weather in Rome'
      const ask = { model: each, prompt, maxRetries, stopWhen: stepCountIs(5) }
      const calls: string[] = []
      const whole = await generateText({ ...ask, tools: recordingTools(calls) })
      t.same(calls, ['get_time', 'get_weather Rome'])
      t.same(
        whole.steps.map(({ finishReason }) => finishReason),
        ['tool-calls', 'tool-calls', 'stop'],
      )
      t.match(whole.text, /get_weather returned: “.*snow.*”/)
      const again: string[] = []
      const streamed = streamText({ ...ask, tools: recordingTools(again) })
      await streamed.consumeStream()
      t.same(again, calls)
      t.equal(await streamed.text, whole.text)
      t.equal((await streamed.steps).length, 3)
    }
  })

  void t.test(`${row.dialect}: parallel calls are each run once and answered together`, async (t) => {
    const prompt = 'Call get_time and get_weather in Oslo in parallel'
    const calls: string[] = []
    const ask = { model, prompt, maxRetries, stopWhen: stepCountIs(3) }
    const whole = await generateText({ ...ask, tools: recordingTools(calls) })
    t.same(calls, ['get_time', 'get_weather Oslo'])
    const [first] = whole.steps
    t.equal(new Set(first?.toolCalls.map(({ toolCallId }) => toolCallId)).size, 2)
    t.match(whole.text, /get_time returned: .*get_weather returned: /)
    const again: string[] = []
    const streamed = streamText({ ...ask, tools: recordingTools(again) })
    await streamed.consumeStream()
    t.same(again, calls)
    t.equal(await streamed.text, whole.text)
  })

  void t.test(`${row.dialect}: toolChoice is obeyed`, async (t) => {
    const tools = recordingTools([])
    const named = async (toolChoice: 'auto' | 'none' | 'required' | 'get_time') => {
      const choice = toolChoice === 'get_time' ? { type: 'tool' as const, toolName: toolChoice } : toolChoice
      const ask = { model, prompt: 'Hello', maxRetries, tools, toolChoice: choice }
      const { toolCalls } = await generateText(ask)
      return toolCalls.map(({ toolName }) => toolName)
    }
    t.same(await named('auto'), [])
    t.same(await named('none'), [])
    t.equal((await named('required')).length, 1)
    t.same(await named('get_time'), ['get_time'])
  })

  void t.test(`${row.dialect}: an image reaches the model`, async (t) => {
    const { text } = await generateText({
      model,
      maxRetries,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image', image: Buffer.from(PIXEL, 'base64') },
          ],
        },
      ],
    })
    t.match(text, /You sent 1 image \(image\/png\)/)
  })

  void t.test(`${row.dialect}: generateObject and streamObject fit the schema`, async (t) => {
    const ask = { model, prompt: 'Make up a person', schema: PERSON, maxRetries }
    // Deprecated for `output` below, and what most programs call.
    /* eslint-disable @typescript-eslint/no-deprecated */
    const { object } = await generateObject(ask)
    const streamed = streamObject(ask)
    /* eslint-enable @typescript-eslint/no-deprecated */
    t.ok(PERSON.safeParse(object).success)
    let partials = 0
    for await (const partial of streamed.partialObjectStream) {
      partials += Number(typeof partial === 'object')
    }
    t.ok(partials > 0)
    t.ok(PERSON.safeParse(await streamed.object).success)
  })

  void t.test(`${row.dialect}: an output of a schema, also after a tool`, async (t) => {
    const output = Output.object({ schema: PERSON })
    const plain = { model, prompt: 'Make up a person', maxRetries, output }
    t.ok(PERSON.safeParse((await generateText(plain)).output).success)
    t.ok(PERSON.safeParse(await streamText(plain).output).success)
    const calls: string[] = []
    const { get_time } = recordingTools(calls)
    const tools = { get_time }
    const ask = { ...plain, prompt: 'Use get_time', tools, stopWhen: stepCountIs(3) }
    t.ok(PERSON.safeParse((await generateText(ask)).output).success)
    t.same(calls, ['get_time'])
  })

  void t.test(`${row.dialect}: reasoning is requested, shown and counted`, async (t) => {
    const ask = {
      model: reasoner,
      prompt: 'Think about 17',
      maxRetries,
      providerOptions: { sluice: { reasoningEffort: 'low' } },
    }
    const whole = await generateText(ask)
    t.equal(whole.reasoningText !== undefined, row.showsThinking)
    t.ok(Number(whole.usage.outputTokenDetails.reasoningTokens) > 0)
    const streamed = streamText(ask)
    await streamed.consumeStream()
    t.equal(await streamed.reasoningText, whole.reasoningText)
    t.equal(await streamed.text, whole.text)
    t.match(whole.text, /Think about 17/)
  })

  void t.test(`${row.dialect}: cancelling closes the upstream connection, whole and streamed`, async (t) => {
    const controller = new AbortController()
    const { signal: abortSignal } = controller
    const streamed = streamText({ model, prompt: LONG, maxRetries, abortSignal })
    let deltas = 0
    for await (const part of streamed.fullStream) {
      if (part.type === 'text-delta' && ++deltas === 5) controller.abort()
    }
    t.ok(deltas >= 5 && deltas < 300, 'it ended where it was left')
    await upstreamIsLeft(t, emulator)
    const another = new AbortController()
    const prompt = 'wait [[fault: hang]]'
    const whole = generateText({ model, prompt, maxRetries, abortSignal: another.signal })
    const failed = thrownBy(() => whole)
    await until(() => emulator.open() > 0)
    another.abort()
    t.match(await failed, { name: 'AbortError' })
    await upstreamIsLeft(t, emulator)
  })

  void t.test(`${row.dialect}: an error before the stream has status and class`, async (t) => {
    const cases = [
      { fault: { kind: 'status', code: 429, 'retry-after': '7' }, status: 429, retry: true },
      { fault: { kind: 'status', code: 500 }, status: 502, retry: true },
      { fault: { kind: 'status', code: 401 }, status: 502, retry: true },
      { fault: { kind: 'status', code: 400 }, status: 400, retry: false },
    ] as const
    for (const { fault, status, retry } of cases) {
      await failing(emulator, fault, async () => {
        const error = await thrownBy(() => generateText({ model, prompt: 'hi', maxRetries }))
        if (!APICallError.isInstance(error)) throw error
        t.equal(error.statusCode, status)
        t.equal(error.isRetryable, retry)
        t.match(error.data, { error: { code: status === 429 ? 'rate_limit_exceeded' : null } })
        t.match(error.responseBody, /"kind":"upstream_/)
        const errors: unknown[] = []
        const onError = (event: { error: unknown }): void => void errors.push(event.error)
        const streamed = streamText({ model, prompt: 'hi', maxRetries, onError })
        await streamed.consumeStream()
        t.equal(errors.length, 1)
        t.ok(APICallError.isInstance(errors[0]))
        t.match(errors[0], { statusCode: status })
      })
    }
  })

  void t.test(`${row.dialect}: an error inside the stream is reported and is not an end`, async (t) => {
    const faults = [
      { kind: 'error', event: 8 },
      { kind: 'cut', event: 8, mode: 'reset' },
      { kind: 'cut', event: 8, mode: 'eof' },
    ] as const
    for (const fault of faults) {
      await failing(emulator, fault, async () => {
        const seen = { text: '', errors: 0, finish: '' }
        const onError = (): void => undefined
        const { fullStream } = streamText({ model, prompt: LONG, maxRetries, onError })
        const thrown = await thrownBy(async () => {
          for await (const part of fullStream) {
            if (part.type === 'text-delta') seen.text += part.text
            if (part.type === 'error') seen.errors += 1
            if (part.type === 'finish') seen.finish = part.finishReason
          }
        })
        t.ok(seen.text.length > 0, 'what had come was given')
        t.equal(seen.errors, 1, 'the error was reported')
        t.ok(APICallError.isInstance(thrown), 'then the connection closes, and the client reports it')
        t.not(seen.finish, 'stop', 'it does not count as a reply')
      })
    }
  })
}
