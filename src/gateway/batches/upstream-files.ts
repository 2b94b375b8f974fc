/**
 * Files of OpenAI's clients with other purposes than `batch`: they are kept by the upstream that
 * `files.upstream` names, and belong to the account that uploaded them.
 *
 * Source: files of the SDK `openai` 7.59.0.
 */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { arrayOf, isObject, stringOf, type JsonObject } from '../../base/json.js'
import type { Identity } from '../../accounts/account.js'
import { isConfigured } from '../../config/config.js'
import { gatewayError, GatewayError } from '../../errors.js'
import { formChunks, formType } from '../../formats/wire/media/form-data.js'
import type { OwnedObjects } from '../objects/owned-objects.js'
import type { Target } from '../generation.js'
import { transportError } from '../transport-errors.js'
import { VendorClient, VendorError } from './vendors/vendor-client.js'

/** Lists of the vendor are read in pages of this length, and this many of them. */
const PAGE = 10_000
const MOST_PAGES = 20

/** A file that a client sent, with the other fields of its form. */
interface SentFile {
  readonly name: string
  /** Its content type; empty if the client stated none. */
  readonly type: string
  readonly fields: ReadonlyMap<string, string>
  readonly chunks: AsyncIterable<Buffer>
}

/** The files of one upstream. Methods reject with `GatewayError`. */
export class UpstreamFiles {
  private readonly name: string
  private readonly client: VendorClient
  private readonly objects: OwnedObjects

  /** Throws `upstream_unconfigured`. */
  constructor(target: Target, objects: OwnedObjects) {
    const { config } = target.upstream
    if (!isConfigured(config)) {
      const message = `The upstream "${config.name}" has no key: ${config.apiKeySource ?? 'api_key'} is not set.`
      throw new GatewayError('upstream_unconfigured', message)
    }
    this.name = config.name
    this.client = new VendorClient(target)
    this.objects = objects
  }

  /** Uploads the file; the vendor's object. */
  async upload({ accountId, keyId }: Identity, file: SentFile): Promise<JsonObject> {
    const boundary = `sluice-${randomUUID()}`
    const fields = Array.from(file.fields, ([name, value]) => ({ name, value }))
    const object = await asked(
      this.client.object({
        ...{ method: 'POST', path: '/files', stream: Readable.from(formChunks(boundary, fields, file)) },
        headers: { 'content-type': formType(boundary) },
      }),
    )
    const id = stringOf(object['id'])
    if (id === undefined) throw new GatewayError('upstream_malformed', 'The uploaded file has no id.')
    const own = { upstream: this.name, accountId, keyId }
    await this.objects.record([{ ...own, id, expiresAtMs: null, facts: '' }])
    return object
  }

  /** The vendor's object of a file of the account. */
  async read(accountId: string, id: string): Promise<JsonObject> {
    return asked(this.client.object({ path: await this.pathOf(accountId, id) }))
  }

  /** The bytes of a file of the account. */
  async content(accountId: string, id: string): Promise<AsyncIterable<Buffer>> {
    const path = await this.pathOf(accountId, id)
    const { body } = await asked(this.client.send({ path: `${path}/content` }))
    return body
  }

  /** Deletes a file of the account; the vendor's reply. */
  async remove(accountId: string, id: string): Promise<JsonObject> {
    const path = await this.pathOf(accountId, id)
    const reply = await asked(this.client.object({ method: 'DELETE', path }))
    await this.objects.remove(this.name, id)
    return reply
  }

  /** The files of the account, in the vendor's order. */
  async list(accountId: string): Promise<JsonObject[]> {
    const own: JsonObject[] = []
    let after = ''
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const reply = await asked(this.client.object({ path: `/files?limit=${PAGE}${after}` }))
      const files = arrayOf(reply['data']).filter(isObject)
      const ids = files.map(({ id }) => stringOf(id) ?? '')
      const owned = await this.objects.isOwned(this.name, accountId, ids)
      own.push(...files.filter((_, at) => owned[at] === true))
      const last = ids.at(-1)
      if (reply['has_more'] !== true || last === undefined) break
      after = `&after=${encodeURIComponent(last)}`
    }
    return own
  }

  private async pathOf(accountId: string, id: string): Promise<string> {
    await this.objects.owned(this.name, accountId, [id])
    return `/files/${encodeURIComponent(id)}`
  }
}

/** The reply; rejects with the error of a client for one of the vendor or of the connection. */
async function asked<Reply>(reply: Promise<Reply>): Promise<Reply> {
  try {
    return await reply
  } catch (error) {
    if (!(error instanceof VendorError)) throw gatewayError(transportError(error, 'connecting'), error)
    const { status, message } = error
    if (status === 401 || status === 403) throw new GatewayError('upstream_denied', message)
    if (status === 429) throw new GatewayError('upstream_busy', message)
    throw new GatewayError(status < 500 ? 'upstream_rejected' : 'upstream_failed', message)
  }
}
