/** Reads the body and the query of an API request and validates them with the schema of the route. */
import type { z } from 'zod'
import { GatewayError } from '../../../errors.js'
import { headerOf, type HttpRequest, type HttpResponse } from '../../../http/message.js'
import { REFUSED } from '../../../http/respond.js'
import { parseObject } from '../../../wire/json/parse-body.js'

/** Maximum body size. The largest valid body is a password of 1,024 bytes in JSON's longest spelling. */
const MAX_BYTES = 65_536

/**
 * Reads the whole body. Rejects with `body_too_large` at the first byte over the limit, or with
 * `client_gone`.
 */
export function readBody(req: HttpRequest, res: HttpResponse): Promise<Buffer> {
  const length = headerOf(req, 'content-length')
  if (length !== undefined && Number(length) > MAX_BYTES) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const refused = (error: GatewayError): void => {
      req.off('data', take).off('end', finish).pause()
      reject(error)
    }
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > MAX_BYTES) refused(tooLarge())
      else chunks.push(chunk)
    }
    const finish = (): void => resolve(Buffer.concat(chunks))
    res.once(REFUSED, refused)
    res.once('close', () => {
      reject(new GatewayError('client_gone', 'The client closed the connection.'))
    })
    req.on('data', take).once('end', finish)
  })
}

/** Parses and validates the body. Throws `malformed_request` that names the field. */
export function parseBody(bytes: Buffer, schema: z.ZodType): unknown {
  const { value } = parseObject(bytes, { maxDepth: 8, maxTokens: 5_000 })
  return parsed(schema, value, '')
}

/** Parses and validates the query; with `null`, the route accepts no query. */
export function parseQuery(url: string, schema: z.ZodType | null): unknown {
  const at = url.indexOf('?')
  const values: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(at === -1 ? '' : url.slice(at + 1))) {
    if (Object.hasOwn(values, name)) {
      throw refused(`the query has ${clippedName(name)} more than once`, clippedName(name))
    }
    values[name] = value
  }
  if (schema === null) {
    const [first] = Object.keys(values)
    if (first !== undefined)
      throw refused(`unknown field ${clippedName(first)} in the query`, clippedName(first))
    return undefined
  }
  return parsed(schema, values, ' in the query')
}

function parsed(schema: z.ZodType, value: unknown, where: string): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const path = issue?.path.map(String).join('.') ?? ''
  if (issue?.code === 'unrecognized_keys') {
    const name = clippedName([...issue.path.map(String), issue.keys[0] ?? ''].join('.'))
    throw refused(`unknown field ${name}${where}`, name)
  }
  const what = path === '' ? 'the request' : path
  throw refused(`${what}${where}: ${issue?.message ?? 'is not valid'}`, path)
}

/** A client's field name, shortened and escaped for an error message. */
function clippedName(name: string): string {
  return name.replaceAll(/[^\w.[\]-]/g, '?').slice(0, 64)
}

function refused(message: string, param: string): GatewayError {
  return new GatewayError('malformed_request', message, param === '' ? {} : { param })
}

function tooLarge(): GatewayError {
  return new GatewayError('body_too_large', `The body must not be larger than ${MAX_BYTES} bytes.`)
}
