/** A vendor of the chat-completions format that refuses requests, and `sluice doctor` on it. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join, resolve } from 'node:path'
import { json } from 'node:stream/consumers'
import type { Test } from 'tap'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { CANARY } from '../../process/program.js'
import { sluiceHere } from '../session.js'
import { listen } from '../../helpers/listen.js'

/** What the vendor answers to a request that it refuses; null: it takes it. */
export type RefusalOf = (body: JsonObject) => { readonly status: number; readonly reply: object } | null

const USAGE = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }

function choiceOf(body: JsonObject): JsonObject {
  const calls = arrayOf(body['tools']).map((tool, index) => {
    const { name = null } = objectOf(objectOf(tool)['function'])
    return { index, id: `call_${index}`, type: 'function', function: { name, arguments: '{"city":"Paris"}' } }
  })
  if (calls.length > 0) return { content: null, tool_calls: calls }
  if (isObject(body['response_format'])) return { content: '{"city":"Paris"}' }
  return { content: 'Hello. It is red.' }
}

/** A vendor of the chat-completions format that refuses what it does not know, and a file with it. */
export async function openVendor(t: Test, refusalOf: RefusalOf, quirks = '') {
  const requests: JsonObject[] = []
  const server = createServer((request, response) => {
    const send = (status: number, value: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(value))
    }
    if (request.method === 'GET') {
      send(200, {
        object: 'list',
        data: [
          { id: 'strict-embed', object: 'model' },
          { id: 'strict-1', object: 'model' },
        ],
      })
      return
    }
    void json(request).then((value) => {
      const body = objectOf(value)
      requests.push(body)
      if (request.url?.endsWith('/embeddings') === true) {
        const data = [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }]
        send(200, {
          object: 'list',
          model: 'strict-embed',
          data,
          usage: { prompt_tokens: 1, total_tokens: 1 },
        })
        return
      }
      const refusal = refusalOf(body)
      if (refusal !== null) {
        send(refusal.status, refusal.reply)
        return
      }
      const message = { role: 'assistant', ...choiceOf(body) }
      const finish = 'tool_calls' in message ? 'tool_calls' : 'stop'
      const head = { id: 'chatcmpl-1', created: 1, model: 'strict-1' }
      if (body['stream'] !== true) {
        const choices = [{ index: 0, message, finish_reason: finish }]
        send(200, { ...head, object: 'chat.completion', choices, usage: USAGE })
        return
      }
      const chunk = { ...head, object: 'chat.completion.chunk' }
      const frames = [
        { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] },
        { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
      ]
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const frame of frames) response.write(`data: ${JSON.stringify(frame)}\n\n`)
      response.end('data: [DONE]\n\n')
    })
  })
  const port = await listen(t, server)
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(
    file,
    `store: sqlite:./data/sluice.db
models: ${resolve('config/models.yaml')}
upstreams:
  strict:
    dialect: openai-chat
    base_url: http://127.0.0.1:${port}/v1
    api_key: ${CANARY}
${quirks}routes:
  - { prefix: strict-, upstream: strict }
`,
  )
  const doctor = async (...args: string[]) => {
    const ran = await sluiceHere(['doctor', 'strict', '--config', file, ...args])
    const made = args.includes('--json') && ran.out !== '' ? objectOf(JSON.parse(ran.out)) : {}
    const features = arrayOf(made['features']).map(objectOf)
    const outcomes: Record<string, JsonObject> = {}
    for (const each of features) outcomes[stringOf(each['feature']) ?? ''] = each
    return { ...ran, made, outcomes }
  }
  return { requests, doctor }
}
