/**
 * The forms of replies of the admin API: zod schemas, each beside its route. Tests check every reply with
 * them, and the OpenAPI document is made of them. For requests of other paths none is made.
 */
import * as z from 'zod'
import type { Fields } from '../../accounts/changes/field-types.js'

/** The form of a reply, or of an object in replies. */
export interface ReplyForm {
  /** Its name in the OpenAPI document. */
  readonly name: string
  /** The schema, the same one in each call. */
  readonly schema: () => z.ZodType
  /** The form of the objects in a list. */
  readonly item?: ReplyForm
}

export function replyForm(name: string, make: () => z.ZodType): ReplyForm {
  let made: z.ZodType | null = null
  return { name, schema: () => (made ??= make()) }
}

/** The form of a page of objects. */
export function listForm(item: ReplyForm, name = `${item.name}List`): ReplyForm {
  return { ...replyForm(name, () => pageSchema(item.schema())), item }
}

/** A page of objects that have no form of their own. */
export function pageSchema(item: z.ZodType): z.ZodType {
  return z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() })
}

/** An object with these fields, as replies have it, and with other members. */
export function fieldsObject(fields: Fields, more: z.ZodRawShape = {}): z.ZodType {
  const shown = Object.entries(fields).flatMap(([name, field]) => {
    const { type, means: description, default: usual, optional, readOnly, writeOnly } = field
    if (writeOnly === true) return []
    const about = {
      ...{ description, ...(usual === undefined ? {} : { default: usual }) },
      ...(readOnly === true ? { readOnly } : {}),
    }
    return [[name, (optional === true ? type.optional() : type).meta(about)] as const]
  })
  return z.strictObject({ ...Object.fromEntries(shown), ...more })
}

/**
 * An object whose members the document does not require: programs that are generated from it also read the
 * replies of gateways that lack a later member.
 */
export function replyObject(shape: z.ZodRawShape): z.ZodType {
  return z.strictObject(shape).meta({ required: undefined })
}

/** An object of any members. */
export const anyObject = () => z.record(z.string(), z.unknown()).meta({ additionalProperties: undefined })

/** A number of items; above 2^53 the nearest one that a client reads. */
export const wholeNumber = () => z.number().min(0).refine(Number.isInteger).meta({ type: 'integer' })
