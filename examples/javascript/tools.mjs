// A tool loop over three providers: each turn uses another model. SLUICE_URL and SLUICE_KEY as in the other
// examples.
import OpenAI from 'openai'

const { SLUICE_URL = 'http://localhost:8080', SLUICE_KEY: apiKey } = process.env
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey })
const tools = [
  {
    type: 'function',
    function: {
      name: 'river_length_km',
      description: 'The length of a river in kilometres',
      parameters: {
        type: 'object',
        properties: { river: { type: 'string' } },
        required: ['river'],
      },
    },
  },
]
const messages = [{ role: 'user', content: 'How long is the Rhine? Use the tool.' }]

for (const model of ['claude-sonnet-5-5', 'gpt-5.4', 'gemini-3.5-flash']) {
  const { choices } = await client.chat.completions.create({ model, messages, tools })
  const { message } = choices[0]
  messages.push(message)
  const calls = message.tool_calls ?? []
  for (const call of calls) {
    messages.push({ role: 'tool', tool_call_id: call.id, content: '1233' })
    console.log(`${model} called ${call.function.name}(${call.function.arguments})`)
  }
  if (calls.length === 0) console.log(`${model}: ${message.content}`)
}
