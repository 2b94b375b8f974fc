/** What servers of tests that stand for vendors read and reply. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The members of a body of JSON. */
export async function jsonBodyOf(req: IncomingMessage): Promise<Record<string, unknown>> {
  let text = ''
  for await (const chunk of req) text += String(chunk)
  return JSON.parse(text) as Record<string, unknown>
}

/** Replies with a value as JSON. */
export function json(value: unknown, status = 200): (res: ServerResponse) => void {
  return (res) => {
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(JSON.stringify(value))
  }
}

/** Replies with events, the data of each a value as JSON. */
export function events(...list: unknown[]): (res: ServerResponse) => void {
  return (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(list.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''))
  }
}
