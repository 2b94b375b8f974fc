/** Reads the multipart form of an upload that is held in memory. */
import { malformed } from '../../errors.js'
import type { UploadPart } from '../../formats/chat/upload.js'
import { boundaryIn, FormParser, type PartHead } from '../../formats/wire/media/form-parser.js'

/** Whether the content type is that of a form. */
export function isForm(type: string): boolean {
  return boundaryIn(type) !== null
}

/** The parts in their order. Throws `malformed_request`. */
export function readForm(raw: Buffer, type: string): UploadPart[] {
  const parts = new PartList()
  const parser = new FormParser(boundaryIn(type) ?? '', parts)
  parser.write(raw)
  parser.end()
  return parts.whole()
}

/** Collects the parts of a form, or of its beginning. */
export class PartList {
  private readonly parts: UploadPart[] = []
  private head: PartHead | null = null
  private chunks: Buffer[] = []

  field(field: { readonly name: string; readonly value: string }): void {
    this.endFile()
    this.parts.push({ name: field.name, value: field.value })
  }

  beginFile(head: PartHead): void {
    this.endFile()
    this.head = head
  }

  fileBytes(bytes: Buffer): void {
    this.chunks.push(bytes)
  }

  rest(): void {
    this.endFile()
  }

  /** The parts so far; the last one may be the beginning of a file. */
  whole(): UploadPart[] {
    this.endFile()
    return this.parts
  }

  private endFile(): void {
    const { head, chunks } = this
    if (head === null) return
    const [first = Buffer.alloc(0)] = chunks
    const bytes = chunks.length <= 1 ? first : Buffer.concat(chunks)
    this.parts.push({ name: head.name, file: { name: head.fileName ?? '', type: head.type, bytes } })
    this.head = null
    this.chunks = []
  }
}

/** The error of an upload that is too large to be held and does not name its model in time. */
export function lateModel(holdBytes: number): Error {
  const mebibytes = holdBytes / (1024 * 1024)
  const what = holdBytes === 0 ? 'an upload' : `an upload of more than ${Number(mebibytes.toFixed(1))} MiB`
  return malformed(
    `The field \`model\` must come before the file in ${what}. In OpenAI's Node SDK, write \`model\` before \`file\`.`,
    'model',
  )
}
