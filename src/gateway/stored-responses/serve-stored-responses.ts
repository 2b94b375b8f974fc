/** Serves the endpoints that read and delete stored responses. Sends nothing to an upstream. */
import type { Identity } from '../../accounts/account.js'
import type { JsonObject } from '../../chat/json.js'
import type { ResolvedEndpoint } from '../../dialects/index.js'
import { GatewayError } from '../../errors.js'
import { sendReply } from '../../http/respond.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import type { Exchange } from '../client-exchange.js'
import type { StoredResponses } from './stored-responses.js'
import { sent, type Delivery } from '../phases/relay.js'

/**
 * Sends or deletes a stored response. Rejects with `GatewayError(unknown_response)` if the account has no
 * such response, and with `forbidden` if the key may not use its model.
 */
export async function serveStoredResponse(
  x: Exchange,
  { endpoint, ingress }: ResolvedEndpoint,
  { identity, responses }: { readonly identity: Identity; readonly responses: StoredResponses },
): Promise<Delivery> {
  const { storage } = ingress
  const id = endpoint.model ?? ''
  if (storage === undefined) throw unknownResponse(id)
  if (x.req.method === 'DELETE') {
    if (!(await responses.remove(identity, id, storage))) throw unknownResponse(id)
    return send(x, storage.deletedReply(id))
  }
  const stored = await responses.find(identity, id)
  if (stored === null) throw unknownResponse(id)
  return send(
    x,
    endpoint.operation === 'stored-input' ? storage.inputPage(id, stored) : stored.reply,
  )
}

function unknownResponse(id: string): GatewayError {
  return new GatewayError(
    'unknown_response',
    `No response '${id}' is stored for this account: it is unknown, has expired, or was created with store: false.`,
    { param: 'response_id' },
  )
}

function send(x: Exchange, body: JsonObject): Delivery {
  x.cancellation.check()
  const json = stringifyExact(body)
  const generation = String(x.generation.snapshot.generation)
  const headers = ['content-type', 'application/json', 'x-request-id', x.id]
  sendReply(x.res, {
    status: 200,
    headers: [...headers, 'x-sluice-generation', generation],
    body: json,
  })
  return sent(Buffer.byteLength(json))
}
