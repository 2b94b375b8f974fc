/** Reads the parts of multipart bodies. */

/** A part: a field or a file of a form, or one of related parts, which have no names. */
interface FormPart {
  readonly name: string | undefined
  /** Undefined for a field. */
  readonly fileName: string | undefined
  /** '' if the part has none. */
  readonly type: string
  readonly content: Buffer
}

/** The parts; undefined if the content type is not multipart. */
export function formParts(raw: Buffer, contentType: string | undefined): FormPart[] | undefined {
  const [, quoted, bare] = /^multipart\/.*\bboundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType ?? '') ?? []
  const boundary = quoted ?? bare
  if (boundary === undefined) return undefined
  const parts: FormPart[] = []
  for (const part of raw.toString('latin1').split(`--${boundary}`)) {
    const at = part.indexOf('\r\n\r\n')
    if (at < 0) continue
    const head = part.slice(0, at)
    const [, name] = /\bname="([^"]*)"/.exec(head) ?? []
    const [, fileName] = /\bfilename="([^"]*)"/.exec(head) ?? []
    const [, type = ''] = /^content-type:(.*)$/im.exec(head) ?? []
    parts.push({ name, fileName, type: type.trim(), content: Buffer.from(part.slice(at + 4, -2), 'latin1') })
  }
  return parts
}
