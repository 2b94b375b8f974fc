/**
 * Goal: programs written for Vercel's `ai` with its Anthropic or Google provider work over every upstream
 * dialect.
 * Method: `@ai-sdk/anthropic` and `@ai-sdk/google`, unmodified except for their base URLs, against a whole
 * gateway and emulated providers; each case per provider and row.
 */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { APICallError, generateText, Output, stepCountIs, streamText, type LanguageModel } from 'ai'
import t from 'tap'
import * as z from 'zod'
import type { JsonObject } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { ROWS, type Row } from '../upstream-cases.js'
import { failing, LONG, PIXEL, thrownBy, upstreamIsLeft } from '../client-scenarios.js'
import { recordingTools } from './ai-sdk-tools.js'
import { isToday } from '../../helpers/long-suite.js'

/** A provider package of `ai`. */
interface Format {
  readonly name: string
  readonly model: (id: string) => LanguageModel
  /** Options that turn reasoning on. */
  readonly reasoning: (row: Row) => Record<string, JsonObject>
  /** The body of a 429. */
  readonly rateLimit: object
}

t.setTimeout(120_000)
const gateway = await startGateway(t)
const { emulator, secret: apiKey } = gateway
const maxRetries = 0
const PERSON = z.object({ name: z.string(), age: z.number().int() })

const FORMATS: readonly Format[] = [
  {
    name: 'anthropic',
    model: createAnthropic({ baseURL: `${gateway.origin}/v1`, apiKey }),
    // Anthropic's newest models choose their own thinking; a budget becomes an effort elsewhere.
    reasoning: ({ dialect }) => ({
      anthropic: {
        thinking: dialect === 'anthropic' ? { type: 'adaptive' } : { type: 'enabled', budgetTokens: 10_000 },
      },
    }),
    rateLimit: { type: 'error', error: { type: 'rate_limit_error' } },
  },
  {
    name: 'google',
    model: createGoogleGenerativeAI({ baseURL: `${gateway.origin}/v1beta`, apiKey }),
    reasoning: () => ({
      google: { thinkingConfig: { thinkingLevel: 'high', includeThoughts: true } },
    }),
    rateLimit: { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } },
  },
]

/** Each day every format, with half of the dialects. */
const PAIRS_OF_DAY = FORMATS.flatMap((format, at) =>
  ROWS.filter((_, index) => isToday(at + index, 2)).map((row) => ({ format, row })),
)

for (const { format, row } of PAIRS_OF_DAY) {
  const model = format.model(row.model)
  const reasoner = format.model(row.reasoner)
  const providerOptions = format.reasoning(row)

  void t.test(
    `${format.name} over ${row.dialect}: generateText and streamText return the same`,
    async (t) => {
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
      t.ok(Number(inputTokens) > 0 && Number(outputTokens) > 0)
    },
  )

  void t.test(`${format.name} over ${row.dialect}: tools in several steps, with thinking`, async (t) => {
    for (const each of [model, reasoner]) {
      const prompt = 'Use get_time, then get_weather in Rome'
      const options = each === reasoner ? { providerOptions } : {}
      const ask = { model: each, prompt, maxRetries, stopWhen: stepCountIs(5), ...options }
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
      if (each === reasoner && row.dialect !== 'openai-chat') {
        const sent = JSON.stringify(emulator.ledger.at(-1)?.body)
        const states = sent.match(/"(?:signature|thoughtSignature|encrypted_content)":"[\w+/=]{40,}"/g)
        t.equal(states?.length, 2, 'the provider got the state of both steps back')
      }
    }
  })

  void t.test(`${format.name} over ${row.dialect}: parallel calls are each run once`, async (t) => {
    const prompt = 'Call get_time and get_weather in Oslo in parallel'
    const calls: string[] = []
    const ask = { model, prompt, maxRetries, stopWhen: stepCountIs(3) }
    const whole = await generateText({ ...ask, tools: recordingTools(calls) })
    t.same(calls, ['get_time', 'get_weather Oslo'])
    t.match(whole.text, /get_time returned: .*get_weather returned: /)
  })

  void t.test(`${format.name} over ${row.dialect}: toolChoice is obeyed`, async (t) => {
    const tools = recordingTools([])
    const named = async (toolChoice: 'auto' | 'none' | 'required') => {
      const { toolCalls } = await generateText({
        model,
        prompt: 'Hello',
        maxRetries,
        tools,
        toolChoice,
      })
      return toolCalls.length
    }
    t.equal(await named('auto'), 0)
    t.equal(await named('none'), 0)
    t.equal(await named('required'), 1)
  })

  void t.test(`${format.name} over ${row.dialect}: an image and an output of a schema`, async (t) => {
    const image = Buffer.from(PIXEL, 'base64')
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image' as const, image },
    ]
    const seen = await generateText({ model, maxRetries, messages: [{ role: 'user', content }] })
    t.match(seen.text, /You sent 1 image \(image\/png\)/)
    const output = Output.object({ schema: PERSON })
    const made = await generateText({ model, prompt: 'Make up a person', maxRetries, output })
    t.ok(PERSON.safeParse(made.output).success)
  })

  void t.test(`${format.name} over ${row.dialect}: reasoning is shown and counted`, async (t) => {
    const ask = { model: reasoner, prompt: 'Think about 17', maxRetries, providerOptions }
    const whole = await generateText(ask)
    t.equal((whole.reasoningText ?? '') !== '', row.showsThinking)
    t.ok(Number(whole.usage.outputTokenDetails.reasoningTokens) > 0)
    const streamed = streamText(ask)
    await streamed.consumeStream()
    t.equal(await streamed.reasoningText, whole.reasoningText)
    t.equal(await streamed.text, whole.text)
  })

  void t.test(
    `${format.name} over ${row.dialect}: cancelling a stream closes the upstream connection`,
    async (t) => {
      const controller = new AbortController()
      const { signal: abortSignal } = controller
      const streamed = streamText({ model, prompt: LONG, maxRetries, abortSignal })
      let deltas = 0
      for await (const part of streamed.fullStream) {
        if (part.type === 'text-delta' && ++deltas === 5) controller.abort()
      }
      t.ok(deltas >= 5 && deltas < 300, 'it ended where it was left')
      await upstreamIsLeft(t, emulator)
    },
  )

  void t.test(`${format.name} over ${row.dialect}: errors before and inside the stream`, async (t) => {
    await failing(emulator, { kind: 'status', code: 429 }, async () => {
      const error = await thrownBy(() => generateText({ model, prompt: 'hi', maxRetries }))
      if (!APICallError.isInstance(error)) throw error
      t.equal(error.statusCode, 429)
      t.match(error.data, format.rateLimit)
    })
    for (const kind of ['error', 'cut'] as const) {
      await failing(emulator, { kind, event: 8 }, async () => {
        const seen = { errors: 0, finish: '' }
        const { fullStream } = streamText({
          model,
          prompt: LONG,
          maxRetries,
          onError: () => undefined,
        })
        const thrown = await thrownBy(async () => {
          for await (const part of fullStream) {
            if (part.type === 'error') seen.errors += 1
            if (part.type === 'finish') seen.finish = part.finishReason
          }
          if (seen.errors > 0) throw new Error('reported')
        })
        t.ok(thrown instanceof Error, `${kind}: the error was reported`)
        t.not(seen.finish, 'stop')
      })
    }
  })
}
