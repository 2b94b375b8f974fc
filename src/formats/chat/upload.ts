/** The parts of a multipart form, in the order of the client. */

/** A file of a form. */
export interface UploadedFile {
  readonly name: string
  /** The content type of the part; empty if it has none. */
  readonly type: string
  readonly bytes: Buffer
}

/** A field, or a file. The name is that of the client, with brackets for lists. */
export type UploadPart =
  { readonly name: string; readonly value: string } | { readonly name: string; readonly file: UploadedFile }
