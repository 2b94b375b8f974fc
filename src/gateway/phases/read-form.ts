/** Reads the multipart form of an upload that is held in memory. */
import { GatewayError } from '../../errors.js'
import type { UploadPart } from '../../formats/chat/upload.js'

/** The vendors' own limit for sound. */
export const MAX_UPLOAD_BYTES = 26_214_400
const MAX_PARTS = 64
const MAX_FIELD_BYTES = 1024 * 1024
const MAX_FIELDS_BYTES = 2 * MAX_FIELD_BYTES

/** Whether the content type is that of a form. */
export function isForm(type: string): boolean {
  return /^multipart\/form-data\s*;/i.test(type) && /boundary=/i.test(type)
}

/** The parts in their order. Rejects with `malformed_request`. */
export async function readForm(raw: Buffer, type: string): Promise<UploadPart[]> {
  let form: FormData
  try {
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- the body is held already, within its limit
    form = await new Response(raw, { headers: { 'content-type': type } }).formData()
  } catch (cause) {
    const message = 'The body is not a valid multipart form: it is damaged or incomplete.'
    throw new GatewayError('malformed_request', message, { cause })
  }
  const entries = [...form.entries()]
  if (entries.length > MAX_PARTS) {
    throw new GatewayError('malformed_request', `The form must have at most ${MAX_PARTS} parts.`)
  }
  const parts: UploadPart[] = []
  let fieldBytes = 0
  for (const [name, value] of entries) {
    if (typeof value !== 'string') {
      const bytes = Buffer.from(await value.arrayBuffer())
      parts.push({ name, file: { name: value.name, type: value.type, bytes } })
      continue
    }
    const bytes = Buffer.byteLength(value)
    fieldBytes += bytes
    if (bytes > MAX_FIELD_BYTES || fieldBytes > MAX_FIELDS_BYTES) {
      const message = `${name.slice(0, 64)} is too large: a field has at most ${MAX_FIELD_BYTES} bytes, and all fields ${MAX_FIELDS_BYTES}.`
      throw new GatewayError('malformed_request', message, { param: name.slice(0, 64) })
    }
    parts.push({ name, value })
  }
  return parts
}
