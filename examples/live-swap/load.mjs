// Streams in Anthropic's format at a steady rate. A stream that does not end with its terminator has failed.
import { clearInterval, setInterval } from 'node:timers'

export function startLoad({ port, key, perSecond }) {
  let complete = 0
  let failed = 0
  const running = new Set()
  const send = () => {
    const stream = ask(port, key).then(
      (text) => {
        if (text.includes('event: message_stop')) complete += 1
        else failed += 1
      },
      () => (failed += 1),
    )
    running.add(stream)
    void stream.finally(() => running.delete(stream))
  }
  const timer = setInterval(send, 1000 / perSecond)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(running)
      return { complete, failed }
    },
  }
}

async function ask(port, key) {
  const response = await fetch(`http://127.0.0.1:${port}/v1/messages`, {
    method: 'POST',
    headers: {
      'x-api-key': key,
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      model: 'claude-sonnet-5-5',
      max_tokens: 200,
      stream: true,
      messages: [{ role: 'user', content: 'Name three rivers. [[words: 20]] [[pace: 20]]' }],
    }),
  })
  return response.text()
}
