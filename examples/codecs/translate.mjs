// Sends one Anthropic Messages request to an OpenAI upstream and back, without the gateway.
// Run it in the repository after `npm run build`: node examples/codecs/translate.mjs
import { StreamTranslator, decodeReply, decodeRequest, encodeReply, encodeRequest } from 'sluice/dialects'

const request = decodeRequest({
  dialect: 'anthropic',
  body: {
    model: 'gpt-5.4',
    max_tokens: 200,
    messages: [{ role: 'user', content: 'Name three rivers.' }],
  },
})

const outgoing = encodeRequest({ from: 'anthropic', to: 'openai-chat', request })
console.log(`POST ${outgoing.path}`)
console.log(outgoing.body)

// What the upstream replies; a program would use fetch() here, with the credential of the provider.
const incoming = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-5.4',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Rhine, Danube, Elbe.' },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 11, completion_tokens: 8, total_tokens: 19 },
}
const seed = { id: 'msg_1', createdAtSeconds: 1, model: 'gpt-5.4' }
const reply = decodeReply('openai-chat', incoming, request)
console.log(encodeReply('anthropic', reply, { request, seed }))

// The same for a stream: chunks of bytes in, text for the client out.
const stream = new StreamTranslator({ from: 'openai-chat', to: 'anthropic', request, seed })
const chunks = [
  'data: {"id":"chatcmpl-1","model":"gpt-5.4","choices":[{"index":0,"delta":{"content":"Rhine"}}]}\n\n',
  'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
  'data: [DONE]\n\n',
]
for (const chunk of chunks) process.stdout.write(stream.write(new TextEncoder().encode(chunk)))
process.stdout.write(stream.end())
console.log(stream.outcome, stream.usage)
