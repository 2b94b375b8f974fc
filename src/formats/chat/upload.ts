/** The parts of a multipart form, in the order of the client. */

/** A file of a form. */
export interface UploadedFile {
  readonly name: string
  /** The content type of the part; empty if it has none. */
  readonly type: string
  /** Its bytes; of a form that is passed on while it arrives, the first ones. */
  readonly bytes: Buffer
  /** The size in bytes; null if the client does not say it, absent: that of `bytes`. */
  readonly size?: number | null
}

/** A field of a form. */
export interface FormField {
  /** That of the client, with brackets for lists. */
  readonly name: string
  readonly value: string
}

/** A field, or a file. */
export type UploadPart = FormField | { readonly name: string; readonly file: UploadedFile }

/** What becomes of a form for an upstream. */
export interface FormRewrite {
  /** Fields that come before those of the client. */
  readonly added: readonly FormField[]
  /** The field as the upstream gets it, by the index of its part; null: it is left out. */
  readonly field: (field: FormField, at: number) => FormField | null
  /** Fields that may get a value of another length; null: any. */
  readonly changed: readonly string[] | null
  /** Files that come last, which the client sent in another form; absent: none. */
  readonly files?: readonly UploadPart[]
}
