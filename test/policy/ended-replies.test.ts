/**
 * Goal: a guarded reply whose client leaves ends the calls of its guards, and is not used unjudged. After a
 * refusal the upstream's reply is cut or read on, depending on `on_disconnect`, and what is read is metered.
 * Method: a scripted provider and a guard server that records when its connections close.
 */
import { createServer, type ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { eventually } from '../faults/scene.js'
import { rowsOf } from '../helpers/ledger.js'
import { CLIENT_FORMATS, MODELS, startScene, type Scene } from './guarded-gateway.js'
import { listen } from '../helpers/listen.js'

const CHAT = ['chat'] as const

interface Guard {
  readonly url: string
  /** Calls that have no answer yet. */
  readonly open: Set<ServerResponse>
  calls: number
  isSilent: boolean
}

/** A guard server that passes everything, or does not answer. */
async function startGuard(t: Test): Promise<Guard> {
  const guard: Guard = { url: '', open: new Set(), calls: 0, isSilent: true }
  const server = createServer((req, res) => {
    req.resume()
    guard.calls += 1
    if (!guard.isSilent) {
      res.end(JSON.stringify({ action: {} }))
      return
    }
    guard.open.add(res)
    res.once('close', () => guard.open.delete(res))
  })
  const port = await listen(t, server)
  return Object.assign(guard, { url: `http://127.0.0.1:${port}` })
}

/** Sends a request and leaves when `seen` resolves. */
async function leave(
  { gateway }: Scene,
  body: object,
  seen: (reply: () => string) => Promise<unknown>,
): Promise<void> {
  const aborter = new AbortController()
  let text = ''
  const asking = fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: aborter.signal,
  }).then(async (response) => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
    }
  })
  const left = asking.catch(() => undefined)
  await seen(() => text)
  aborter.abort()
  await left
}

void t.test('a call on a reply ends when the client leaves', async (t) => {
  const guard = await startGuard(t)
  const scene = await startScene(
    t,
    `  topics: { url: '${guard.url}', protocol: webhook, on: [response], window_chars: 20, timeout_ms: 60000, apply_to: { all: true } }`,
  )
  const { gateway, provider } = scene
  provider.reply = { text: 'words '.repeat(40), split: (text) => Array.from(text) }
  let count = 0
  for (const model of MODELS) {
    for (const stream of [false, true]) {
      const body = { model, stream, messages: [{ role: 'user', content: 'hi' }] }
      await leave(scene, body, () => eventually(() => guard.open.size === 1, 'the guard is called'))
      await eventually(() => guard.open.size === 0, 'the call of the guard is closed')
      count += 1
      await eventually(() => gateway.lines.length >= count, 'the exchange is over')
    }
  }
  for (const [at, row] of (await rowsOf(gateway)).entries()) {
    t.match(row, { outcome: 'client_gone', status: 499, guardrails: null }, row.model)
    // A whole reply has arrived with its counts.
    if (at % 2 === 0) t.match(row, { source: 'reported', usage: { input: 5, output: 7 } })
  }
  const metrics = await gateway.metrics.text()
  t.notMatch(metrics, /verdicts_total\{guardrail="topics",on="response",verdict="error"\} [1-9]/)
  t.match(metrics, /sluice_guardrail_breaker_state\{guardrail="topics"\} 0/)
})

void t.test('a refused reply is cut, or read on and metered', async (t) => {
  for (const setting of ['cancel', 'drain', 'drain_until_usage'] as const) {
    const { ask, provider, gateway } = await startScene(
      t,
      `  secrets: { patterns: ['bad'], on: [response], window_chars: 16, apply_to: { all: true } }`,
      `on_disconnect: ${setting}`,
    )
    const names: string[] = []
    for (const [begun, text] of [
      [true, 'a good beginning of it all, then bad things and more of the rest'],
      [false, 'bad things and more of the rest, to the end of the whole reply'],
    ] as const) {
      for (const model of MODELS) {
        for (const format of begun && setting === 'drain' ? CLIENT_FORMATS : CHAT) {
          const name = `${setting}: ${format} to ${model}, ${begun ? 'begun' : 'not begun'}`
          let isAnswered = false
          // The rest waits until the client has its end.
          let sent = 0
          const { closedEarly } = provider
          const isRefused = (): boolean =>
            setting === 'cancel' ? provider.closedEarly > closedEarly : isAnswered
          provider.reply = {
            text,
            split: (whole) => whole.split(/(?<= )/),
            pace: async () => {
              sent += 1
              if (sent > 12) await eventually(isRefused, 'the client has the end')
              else await new Promise((resolve) => setImmediate(resolve))
            },
          }
          const reply = await ask(format, model, { stream: true })
          isAnswered = true
          t.equal(reply.status, begun ? 200 : 400, name)
          if (begun) t.notMatch(reply.text, /bad|things|rest/, name)
          names.push(name)
          await eventually(() => gateway.lines.length >= names.length, 'the exchange is over')
          const cut = setting === 'cancel' ? names.length : 0
          await eventually(() => provider.closedEarly >= cut, 'the connection is closed')
        }
      }
    }
    const rows = await rowsOf(gateway)
    for (const [at, name] of names.entries()) {
      const row = rows[at]
      t.match(row, { outcome: 'guardrail_blocked', guardrails: 'secrets:block' }, name)
      if (setting === 'cancel') t.equal(row?.source, 'estimated', name)
      else t.match(row, { source: 'reported', usage: { input: 5, output: 7 } }, name)
    }
    t.equal(provider.closedEarly, setting === 'cancel' ? names.length : 0, setting)
  }
})
