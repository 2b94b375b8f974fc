/** A receiver of webhooks, which verifies signatures with the official library of Standard Webhooks. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { Test } from 'tap'
import { until } from '../../helpers/upstream.js'

export interface ReceivedWebhook {
  readonly type: string
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

/** A running receiver. */
export interface WebhookReceiver {
  readonly url: string
  /** Every attempt, with its headers and whether its signature is valid. */
  readonly tries: {
    readonly headers: IncomingHttpHeaders
    readonly body: ReceivedWebhook
    readonly isSigned: boolean
    readonly atMs: number
  }[]
  /** The reply to an attempt; default 204. */
  answer: (attempt: number) => { status: number; headers?: Record<string, string> } | 'hang'
  /** Resolves with the webhooks of a type when `count` have arrived. */
  of(type: string, count: number): Promise<ReceivedWebhook[]>
}

/** Secrets of both forms: with `whsec_`, and plain text. */
export const SECRETS = {
  encoded: `whsec_${Buffer.from('canary-secret-of-32-bytes-length').toString('base64')}`,
  plain: 'canary secret as plain text',
}

/** Starts it on a free port; it ends with the test. */
export async function startReceiver(t: Test, secret = SECRETS.encoded): Promise<WebhookReceiver> {
  const isEncoded = secret.startsWith('whsec_')
  const verifier = isEncoded ? new Webhook(secret) : new Webhook(secret, { format: 'raw' })
  const server = createServer((req, res) => {
    void text(req).then((body) => {
      let isSigned = true
      try {
        verifier.verify(body, req.headers as Record<string, string>)
      } catch {
        isSigned = false
      }
      const parsed = JSON.parse(body) as ReceivedWebhook
      receiver.tries.push({ headers: req.headers, body: parsed, isSigned, atMs: performance.now() })
      const answer = receiver.answer(receiver.tries.length)
      if (answer === 'hang') return
      res.writeHead(answer.status, answer.headers)
      res.end('ok')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => void server.close(() => resolve()))
  })
  const { port } = server.address() as AddressInfo
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${port}/hooks?token=canary-path`,
    tries: [],
    answer: () => ({ status: 204 }),
    async of(type, count) {
      const found = (): ReceivedWebhook[] =>
        receiver.tries.map(({ body }) => body).filter((body) => body.type === type)
      await until(() => found().length >= count)
      return found()
    },
  }
  return receiver
}
