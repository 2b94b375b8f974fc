/** Writes multipart forms (RFC 7578). */
import type { FormField, UploadPart } from '../../chat/upload.js'
import { sha256Hex } from '../sha256.js'

/** A body with its content type. */
interface FormBody {
  readonly type: string
  readonly body: Buffer
}

/** The form of these parts, in their order. */
export function formBody(parts: readonly UploadPart[]): FormBody {
  const boundary = boundaryFor(parts)
  const chunks: (string | Buffer)[] = []
  for (const part of parts) {
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(part.name)}"`
    if ('value' in part) {
      chunks.push(`${head}\r\n\r\n${part.value}\r\n`)
      continue
    }
    const { name, type, bytes } = part.file
    const contentType = type === '' ? 'application/octet-stream' : type
    chunks.push(`${head}; filename="${escaped(name)}"\r\ncontent-type: ${contentType}\r\n\r\n`, bytes, '\r\n')
  }
  chunks.push(`--${boundary}--\r\n`)
  const body = Buffer.concat(chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk)))
  return { type: `multipart/form-data; boundary=${boundary}`, body }
}

const USUAL_BOUNDARY = 'sluice-form'

/**
 * A boundary that no part contains. A file cannot have been made to contain its own hash, so one search is
 * enough, however often it has the usual boundary.
 */
function boundaryFor(parts: readonly UploadPart[]): string {
  const values = parts.map((part) => ('value' in part ? part.value : part.file.bytes))
  if (!values.some((value) => value.includes(USUAL_BOUNDARY))) return USUAL_BOUNDARY
  return `${USUAL_BOUNDARY}-${sha256Hex(values.map((value) => sha256Hex(value)).join()).slice(0, 32)}`
}

/** A field with the line break and the boundary before it. */
export function fieldPart(boundary: string, { name, value }: FormField): string {
  const head = `content-disposition: form-data; name="${escaped(name)}"`
  return `\r\n--${boundary}\r\n${head}\r\n\r\n${value}`
}

/** As browsers write names (WHATWG HTML, "multipart/form-data encoding algorithm"). */
function escaped(name: string): string {
  return name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22')
}
