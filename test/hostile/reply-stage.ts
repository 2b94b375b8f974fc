/** A gateway in this process, with an upstream of costly replies and a client in another one. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import type { ClientReply } from './replies-child.js'

const CHILD = fileURLToPath(new URL('replies-child.js', import.meta.url))

/** The gateway, and a function that requests the costly reply of that name through it. */
export interface ReplyStage {
  readonly gateway: TestGateway
  readonly reply: (name: string) => Promise<ClientReply>
}

/** Starts both; they end with the test. */
export async function openReplyStage(t: Test): Promise<ReplyStage> {
  const child = fork(CHILD)
  t.teardown(() => child.disconnect())
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  const gateway = await startGateway(t, { upstreams: { openai: `http://127.0.0.1:${port}/v1` } })
  const reply = async (name: string): Promise<ClientReply> => {
    child.send({ name, port: gateway.port, secret: gateway.secret })
    const [answer] = (await once(child, 'message')) as [ClientReply]
    return answer
  }
  return { gateway, reply }
}
