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
  const chunks = parts.flatMap((part): Buffer[] => {
    if ('value' in part) return [Buffer.from(fieldPart(boundary, part))]
    const { name, file } = part
    return [Buffer.from(fileHead(boundary, { ...file, field: name })), file.bytes]
  })
  // Nothing is before the first boundary.
  const body = Buffer.concat([...chunks, formEnd(boundary)]).subarray(LINE_BREAK.length)
  return { type: formType(boundary), body }
}

/** A file that is sent while it is read. */
interface SentFile {
  readonly name: string
  /** Its content type; empty if it has none. */
  readonly type: string
  readonly chunks: AsyncIterable<Buffer>
}

/** The form of these fields and a file `file`, which must not contain the boundary. */
export async function* formChunks(
  boundary: string,
  fields: readonly FormField[],
  file: SentFile,
): AsyncGenerator<Buffer> {
  const texts = fields.map((field) => fieldPart(boundary, field))
  yield Buffer.from(
    [...texts, fileHead(boundary, { ...file, field: 'file' })].join('').slice(LINE_BREAK.length),
  )
  yield* file.chunks
  yield formEnd(boundary)
}

/** The content type of a form. */
export function formType(boundary: string): string {
  return `multipart/form-data; boundary=${boundary}`
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

const LINE_BREAK = '\r\n'

/** What is before the bytes of a file. */
function fileHead(
  boundary: string,
  { field, name, type }: { readonly field: string; readonly name: string; readonly type: string },
): string {
  const head = `content-disposition: form-data; name="${escaped(field)}"; filename="${escaped(name)}"`
  const contentType = type === '' ? 'application/octet-stream' : type
  return `\r\n--${boundary}\r\n${head}\r\ncontent-type: ${contentType}\r\n\r\n`
}

function formEnd(boundary: string): Buffer {
  return Buffer.from(`\r\n--${boundary}--\r\n`)
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
