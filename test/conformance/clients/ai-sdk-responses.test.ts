/**
 * Goal: a program written for Vercel's `ai` with `@ai-sdk/openai`, whose default is Responses, works over
 * every upstream.
 * Method: the unmodified packages against a whole gateway and emulated providers; each case per row.
 */
import { createOpenAI } from '@ai-sdk/openai'
import { APICallError, generateText, Output, stepCountIs, streamText } from 'ai'
import t from 'tap'
import * as z from 'zod'
import { startGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'
import { overChat } from '../check-responses.js'
import { ROWS } from '../upstream-cases.js'
import { failing, LONG, PIXEL, thrownBy, upstreamIsLeft } from '../client-scenarios.js'
import { recordingTools } from './ai-sdk-tools.js'

t.setTimeout(120_000)
const plain = await startGateway(t)
const chatOnly = await startGateway(t)
overChat(chatOnly)
const maxRetries = 0

const PERSON = z.object({ name: z.string(), age: z.number().int() })

for (const row of ROWS) {
  const gateway = row.dialect === 'openai-chat' ? chatOnly : plain
  const { emulator } = gateway
  const openai = createOpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret })
  const model = openai(row.model)
  const reasoner = openai(row.reasoner)

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
    t.ok(Number(inputTokens) > 0 && Number(outputTokens) > 0)
  })

  void t.test(`${row.dialect}: tools in several steps, stored and not`, async (t) => {
    for (const store of [true, false]) {
      for (const each of [model, reasoner]) {
        const prompt = 'Use get_time, then get_weather in Rome'
        const openaiOptions = store ? { store } : { store, include: ['reasoning.encrypted_content'] }
        const isPlain = each === model
        const providerOptions = { openai: isPlain ? { store } : openaiOptions }
        const ask = { model: each, prompt, maxRetries, stopWhen: stepCountIs(5), providerOptions }
        const calls: string[] = []
        const whole = await generateText({ ...ask, tools: recordingTools(calls) })
        t.same(calls, ['get_time', 'get_weather Rome'])
        t.match(whole.text, /get_weather returned: “.*snow.*”/)
        const again: string[] = []
        const streamed = streamText({ ...ask, tools: recordingTools(again) })
        await streamed.consumeStream()
        t.same(again, calls)
        t.equal(await streamed.text, whole.text)
        t.equal((await streamed.steps).length, 3)
      }
    }
  })

  void t.test(`${row.dialect}: parallel calls are each run once`, async (t) => {
    const prompt = 'Call get_time and get_weather in Oslo in parallel'
    const calls: string[] = []
    const ask = { model, prompt, maxRetries, stopWhen: stepCountIs(3) }
    const whole = await generateText({ ...ask, tools: recordingTools(calls) })
    t.same(calls, ['get_time', 'get_weather Oslo'])
    t.match(whole.text, /get_time returned: .*get_weather returned: /)
    const again: string[] = []
    const streamed = streamText({ ...ask, tools: recordingTools(again) })
    await streamed.consumeStream()
    t.same(again, calls)
    t.equal(await streamed.text, whole.text)
  })

  void t.test(`${row.dialect}: an image reaches the model`, async (t) => {
    const image = Buffer.from(PIXEL, 'base64')
    const { text } = await generateText({
      model,
      maxRetries,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image', image },
          ],
        },
      ],
    })
    t.match(text, /You sent 1 image \(image\/png\)/)
  })

  void t.test(`${row.dialect}: an output of a schema, also streamed`, async (t) => {
    const ask = {
      model,
      prompt: 'Make up a person',
      maxRetries,
      output: Output.object({ schema: PERSON }),
    }
    t.ok(PERSON.safeParse((await generateText(ask)).output).success)
    t.ok(PERSON.safeParse(await streamText(ask).output).success)
  })

  void t.test(`${row.dialect}: reasoning is requested, shown and counted`, async (t) => {
    const providerOptions = {
      openai: { reasoningEffort: 'low', reasoningSummary: 'auto', forceReasoning: true },
    }
    const ask = { model: reasoner, prompt: 'Think about 17', maxRetries, providerOptions }
    const whole = await generateText(ask)
    const isShown = row.showsThinking || row.dialect === 'openai-responses'
    t.equal(whole.reasoningText !== undefined && whole.reasoningText !== '', isShown)
    t.ok(Number(whole.usage.outputTokenDetails.reasoningTokens) > 0)
    const streamed = streamText(ask)
    await streamed.consumeStream()
    t.equal(await streamed.reasoningText, whole.reasoningText)
    t.match(await streamed.text, /Think about 17/)
  })

  void t.test(`${row.dialect}: previousResponseId continues a conversation`, async (t) => {
    const one = await generateText({ model, prompt: 'My name is Ada', maxRetries })
    const { responseId } = one.providerMetadata?.['openai'] ?? {}
    const previousResponseId = typeof responseId === 'string' ? responseId : ''
    t.match(previousResponseId, /^resp_/)
    const providerOptions = { openai: { previousResponseId } }
    await generateText({ model, prompt: 'What is my name?', maxRetries, providerOptions })
    t.match(JSON.stringify(emulator.ledger.at(-1)?.body), /My name is Ada/)
  })

  void t.test(`${row.dialect}: cancelling a stream closes the upstream connection`, async (t) => {
    const controller = new AbortController()
    const { signal: abortSignal } = controller
    const streamed = streamText({ model, prompt: LONG, maxRetries, abortSignal })
    let deltas = 0
    for await (const part of streamed.fullStream) {
      if (part.type === 'text-delta' && ++deltas === 5) controller.abort()
    }
    t.ok(deltas >= 5 && deltas < 300)
    await upstreamIsLeft(t, emulator)
    const another = new AbortController()
    const whole = generateText({
      model,
      prompt: 'wait [[fault: hang]]',
      maxRetries,
      abortSignal: another.signal,
    })
    const failed = thrownBy(() => whole)
    await until(() => emulator.open() > 0)
    another.abort()
    t.match(await failed, { name: 'AbortError' })
    await upstreamIsLeft(t, emulator)
  })

  void t.test(`${row.dialect}: errors before and inside the stream`, async (t) => {
    await failing(emulator, { kind: 'status', code: 429, 'retry-after': '7' }, async () => {
      const error = await thrownBy(() => generateText({ model, prompt: 'hi', maxRetries }))
      if (!APICallError.isInstance(error)) throw error
      t.equal(error.statusCode, 429)
      t.match(error.responseBody, /"kind":"upstream_/)
    })
    const faults = [
      { kind: 'error', event: 8 },
      { kind: 'cut', event: 8, mode: 'reset' },
    ] as const
    for (const fault of faults) {
      await failing(emulator, fault, async () => {
        const seen = { text: '', errors: 0, finish: '' }
        const { fullStream } = streamText({
          model,
          prompt: LONG,
          maxRetries,
          onError: () => undefined,
        })
        await thrownBy(async () => {
          for await (const part of fullStream) {
            if (part.type === 'text-delta') seen.text += part.text
            if (part.type === 'error') seen.errors += 1
            if (part.type === 'finish') seen.finish = part.finishReason
          }
          throw new Error('over')
        })
        t.ok(seen.text.length > 0, 'what had come was given')
        t.not(seen.finish, 'stop', 'it does not count as a reply')
        t.ok(seen.errors > 0 || seen.finish === 'error', 'the error was reported')
      })
    }
  })
}
