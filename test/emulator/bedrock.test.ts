/**
 * Goal: the emulated Bedrock has the format of the real one: AWS's own SDK reads all that it sends.
 * Method: the SDK converses, streams, invokes Claude and counts tokens, also with faults and errors; only
 * paths that the SDK cannot write are sent by hand.
 */
import {
  BedrockRuntimeClient,
  BedrockRuntimeServiceException,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
  type ConverseStreamOutput,
  type Message,
  type ToolConfiguration,
} from '@aws-sdk/client-bedrock-runtime'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import t from 'tap'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'

const NOVA = 'us.amazon.nova-lite-v1:0'
const CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'

let emulator: Emulator
let client: BedrockRuntimeClient

t.before(async () => {
  emulator = await startEmulator()
  client = sdk(emulator)
})
t.teardown(async () => {
  client.destroy()
  await emulator.close()
})

/** AWS's SDK. Its HTTP/2 needs a server with TLS. */
function sdk({ baseUrls }: Emulator, accessKeyId = 'AKIDEXAMPLE'): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    region: 'eu-west-1',
    endpoint: baseUrls.bedrock,
    credentials: { accessKeyId, secretAccessKey: 'example' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })
}

function userTurn(text: string): Message[] {
  return [{ role: 'user', content: [{ text }] }]
}

const TOOLS: ToolConfiguration = {
  tools: [
    {
      toolSpec: {
        name: 'get_weather',
        inputSchema: {
          json: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      },
    },
  ],
  toolChoice: { any: {} },
}

/** The exception of a call. */
async function failureOf(call: Promise<unknown>): Promise<BedrockRuntimeServiceException> {
  try {
    await call
  } catch (error) {
    if (error instanceof BedrockRuntimeServiceException) return error
    throw error
  }
  throw new Error('the call did not fail')
}

async function eventsOf(text: string, modelId = NOVA): Promise<ConverseStreamOutput[]> {
  const { stream = [] } = await client.send(new ConverseStreamCommand({ modelId, messages: userTurn(text) }))
  const events: ConverseStreamOutput[] = []
  for await (const event of stream) events.push(event)
  return events
}

void t.test('a whole reply', async (t) => {
  const reply = await client.send(new ConverseCommand({ modelId: NOVA, messages: userTurn('Hello there') }))
  t.match(reply.output?.message?.content?.[0]?.text, /emulated reply from us\.amazon.*Hello there/)
  t.equal(reply.stopReason, 'end_turn')
  t.ok((reply.usage?.inputTokens ?? 0) > 0)
  t.match(reply.$metadata.requestId, /^req_emulated/)
  t.equal(emulator.ledger.at(-1)?.provider, 'bedrock')
  t.equal(emulator.ledger.at(-1)?.model, NOVA)
  t.end()
})

void t.test('a stream, with padding and counts after its end', async (t) => {
  const events = await eventsOf('Hello there')
  t.ok(events[0]?.messageStart !== undefined)
  const text = events.map(({ contentBlockDelta }) => contentBlockDelta?.delta?.text ?? '').join('')
  t.match(text, /Hello there/)
  t.equal(events.at(-2)?.messageStop?.stopReason, 'end_turn')
  t.ok((events.at(-1)?.metadata?.usage?.outputTokens ?? 0) > 0)
  t.end()
})

void t.test('tools, in one turn and the next', async (t) => {
  const first = await client.send(
    new ConverseCommand({
      modelId: CLAUDE,
      messages: userTurn('Weather in Rome?'),
      toolConfig: TOOLS,
    }),
  )
  t.equal(first.stopReason, 'tool_use')
  const call = first.output?.message?.content?.[0]?.toolUse
  t.same(call?.input, { city: 'Rome' })
  if (first.output?.message === undefined) throw new Error('no message')
  const messages: Message[] = [
    ...userTurn('Weather in Rome?'),
    first.output.message,
    {
      role: 'user',
      content: [{ toolResult: { toolUseId: call?.toolUseId, content: [{ text: 'sunny' }] } }],
    },
  ]
  const toolConfig = { tools: TOOLS.tools }
  const next = await client.send(new ConverseCommand({ modelId: CLAUDE, messages, toolConfig }))
  t.match(next.output?.message?.content?.[0]?.text, /get_weather returned: “sunny”/)
  const missing = await failureOf(client.send(new ConverseCommand({ modelId: CLAUDE, messages })))
  t.match(missing.message, /toolConfig field must be defined/)
  t.end()
})

void t.test('the reasoning of Claude is signed, and verified when it returns', async (t) => {
  const additionalModelRequestFields = { thinking: { type: 'enabled', budget_tokens: 1024 } }
  const messages = userTurn('Think.')
  const input = { modelId: CLAUDE, additionalModelRequestFields }
  const { output } = await client.send(new ConverseCommand({ ...input, messages }))
  const reasoning = output?.message?.content?.[0]?.reasoningContent?.reasoningText
  t.match(reasoning?.signature, /^\S{100,}$/)
  if (output?.message === undefined) throw new Error('no message')
  const turns = [...messages, output.message, ...userTurn('And?')]
  const next = await client.send(new ConverseCommand({ ...input, messages: turns }))
  t.equal(next.stopReason, 'end_turn')
  const changed: Message = {
    role: 'assistant',
    content: [
      { reasoningContent: { reasoningText: { text: 'Other.', signature: reasoning?.signature } } },
      { text: 'Yes.' },
    ],
  }
  const refused = new ConverseCommand({
    ...input,
    messages: [...messages, changed, ...userTurn('?')],
  })
  t.match((await failureOf(client.send(refused))).message, /Invalid `signature`/)
  t.end()
})

void t.test('InvokeModel for Claude, whole and streamed', async (t) => {
  const body = JSON.stringify({
    anthropic_version: 'bedrock-2023-05-31',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hello there' }],
  })
  const input = { modelId: CLAUDE, body, contentType: 'application/json' }
  const whole = await client.send(new InvokeModelCommand(input))
  const message = JSON.parse(Buffer.from(whole.body).toString()) as Record<string, unknown>
  t.equal(message.type, 'message')
  t.equal(message.stop_reason, 'end_turn')
  const streamed = await client.send(new InvokeModelWithResponseStreamCommand(input))
  const types: unknown[] = []
  let last: Record<string, unknown> = {}
  for await (const { chunk } of streamed.body ?? []) {
    last = JSON.parse(Buffer.from(chunk?.bytes ?? []).toString()) as Record<string, unknown>
    types.push(last.type)
  }
  t.equal(types[0], 'message_start')
  t.equal(types.at(-1), 'message_stop')
  t.notOk(types.includes('ping'))
  t.ok('amazon-bedrock-invocationMetrics' in last)
  const extraneous = { ...input, body: body.replace('{', '{"stream":true,') }
  const failure = await failureOf(client.send(new InvokeModelCommand(extraneous)))
  t.equal(failure.name, 'ValidationException')
  t.match(failure.message, /extraneous key \[stream\]/)
  const old = { ...input, body: body.replace(/"anthropic_version":"[^"]*",/, '') }
  t.match((await failureOf(client.send(new InvokeModelCommand(old)))).message, /Field required/)
  t.end()
})

void t.test('embeddings of each vendor', async (t) => {
  const invoke = async (modelId: string, input: object): Promise<unknown> => {
    const body = JSON.stringify(input)
    const reply = await client.send(new InvokeModelCommand({ modelId, body }))
    return JSON.parse(Buffer.from(reply.body).toString())
  }
  const titan = await invoke('amazon.titan-embed-text-v2:0', { inputText: 'a', dimensions: 256 })
  t.match(titan, { embedding: { length: 256 }, inputTextTokenCount: 1 })
  const texts = { texts: ['a', 'b'], input_type: 'clustering' }
  t.match(await invoke('cohere.embed-v4:0', texts), { embeddings: { float: { length: 2 } } })
  t.end()
})

void t.test('token counts, for foundation models alone', async (t) => {
  const counted = { converse: { messages: userTurn('Hello there') } }
  const modelId = 'anthropic.claude-sonnet-4-20250514-v1:0'
  const { inputTokens } = await client.send(new CountTokensCommand({ modelId, input: counted }))
  t.ok((inputTokens ?? 0) > 0)
  const body = Buffer.from(
    '{"anthropic_version":"2026-10-21","max_tokens":1,"messages":[{"role":"user","content":"Hello"}]}',
  )
  const invoked = { modelId, input: { invokeModel: { body } } }
  t.ok(((await client.send(new CountTokensCommand(invoked))).inputTokens ?? 0) > 0)
  const profile = new CountTokensCommand({ modelId: CLAUDE, input: counted })
  t.match((await failureOf(client.send(profile))).message, /model identifier is invalid/)
  t.end()
})

void t.test('errors have the name that the SDK reads', async (t) => {
  const send = (input: { modelId?: string; messages?: Message[] }, by = client): Promise<unknown> =>
    by.send(new ConverseCommand({ modelId: NOVA, messages: userTurn('Hello'), ...input }))
  t.equal((await failureOf(send({ modelId: 'gpt-4o' }))).name, 'ValidationException')
  t.match((await failureOf(send({ messages: userTurn(' ') }))).message, /is blank/)
  const unknownKey = sdk(emulator, 'invalid')
  t.equal((await failureOf(send({}, unknownKey))).name, 'UnrecognizedClientException')
  unknownKey.destroy()
  const scripted: [number, string][] = [
    [429, 'ThrottlingException'],
    [503, 'ServiceUnavailableException'],
    [424, 'ModelErrorException'],
    [408, 'ModelTimeoutException'],
    [500, 'InternalServerException'],
  ]
  for (const [code, name] of scripted) {
    emulator.script({ times: 1, fault: { kind: 'status', code } })
    const failure = await failureOf(send({}))
    t.equal(failure.name, name)
    t.equal(failure.$metadata.httpStatusCode, code)
  }
  t.end()
})

void t.test('faults within a stream', async (t) => {
  emulator.script({ times: 1, fault: { kind: 'error', event: 3 } })
  t.equal((await failureOf(eventsOf('Hello'))).name, 'ThrottlingException')
  const type = 'modelStreamErrorException'
  emulator.script({ times: 1, fault: { kind: 'error', event: 3, type } })
  t.equal((await failureOf(eventsOf('Hello'))).name, 'ModelStreamErrorException')
  emulator.script({ times: 1, fault: { kind: 'unterminated' } })
  const events = await eventsOf('Hello')
  t.notOk(events.some(({ messageStop, metadata }) => (messageStop ?? metadata) !== undefined))
  emulator.script({ times: 1, fault: { kind: 'unknown', event: 2 } })
  t.ok((await eventsOf('Hello')).some(({ metadata }) => metadata !== undefined))
  t.end()
})

void t.test('a bare slash in the id is a 200 that carries an error', async (t) => {
  const path = '/model/arn:aws:bedrock:eu-west-1:111122223333:inference-profile/a/converse'
  const reply = await fetch(`${emulator.baseUrls.bedrock}${path}`, { method: 'POST', body: '{}' })
  t.equal(reply.status, 200)
  t.match(await reply.text(), /UnknownOperationException/)
  t.end()
})
