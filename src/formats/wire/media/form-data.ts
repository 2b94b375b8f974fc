/** Writes multipart forms (RFC 7578). */
import type { FormField, UploadPart } from '../../chat/upload.js'

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

/** A boundary that no part contains. */
function boundaryFor(parts: readonly UploadPart[]): string {
  for (let at = 0; ; at += 1) {
    const boundary = `sluice-form-${at}`
    const isUsed = parts.some((part) =>
      'value' in part ? part.value.includes(boundary) : part.file.bytes.includes(boundary),
    )
    if (!isUsed) return boundary
  }
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
