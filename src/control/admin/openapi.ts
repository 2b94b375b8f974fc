/**
 * The OpenAPI 3.1 document of the admin API, from its table of routes, the fields of its objects, the forms
 * of its replies and its table of errors.
 */
import * as z from 'zod'
import { SCOPES } from '../../accounts/admin-tokens.js'
import { objectOf, type JsonObject } from '../../base/json.js'
import { JSON_SCHEMA, schemaOf, schemaOfType, without } from '../../accounts/changes/field-types.js'
import { PROBLEMS } from '../problem-details.js'
import type { AdminRoute, BodyOf } from './route.js'
import { replyForm, replyObject, type ReplyForm } from './reply-forms.js'

const CONDITIONS: JsonObject[] = [
  {
    ...{ name: 'If-Match', in: 'header', schema: { type: 'string' } },
    description: 'Only if the object has one of these entity tags; `*`: only if it exists. Else 412.',
  },
  {
    ...{ name: 'If-None-Match', in: 'header', schema: { type: 'string' } },
    description:
      'Only if the object has none of these entity tags; `*`: only if it does not exist. Else 412; 304 for a read.',
  },
]

const OPENAPI_ROUTE: JsonObject = {
  get: {
    operationId: 'getOpenapiJson',
    summary: 'This document',
    security: [],
    responses: {
      200: {
        description: 'OpenAPI 3.1',
        content: { 'application/json': { schema: { type: 'object' } } },
      },
    },
  },
}

export function openapiDocument(routes: readonly AdminRoute[], version: string): JsonObject {
  const paths: Record<string, JsonObject> = { '/openapi.json': OPENAPI_ROUTE }
  for (const route of routes) {
    const { method, path } = route
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(route) }
  }
  const bodies = routes.flatMap(({ body }) => (body === undefined ? [] : [body]))
  const { Problem = {}, ...replies } = replySchemas(routes)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice admin API',
      version,
      summary: 'Accounts, members, keys, usage and the configuration, for programs with a token',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/admin/v1', description: 'The data port, or the ops port (admin_api.listen)' }],
    security: [{ adminToken: [] }],
    paths,
    components: {
      securitySchemes: {
        adminToken: {
          type: 'http',
          scheme: 'bearer',
          description: `A token \`sat_…\` with scopes: ${SCOPES.join(', ')}`,
        },
      },
      schemas: {
        ...replies,
        ...Object.fromEntries(bodies.map((body) => [schemaName(body), bodySchema(body)])),
        Problem,
      },
      responses: {
        Problem: {
          description: 'Problem details (RFC 9457); `kind` names the error',
          content: { 'application/problem+json': { schema: ref('Problem') } },
        },
      },
    },
  }
}

function operationOf(route: AdminRoute): JsonObject {
  const { method, path, scopes, needsAll, summary, query = {}, body, replies, hasCsv } = route
  const joined = (scopes ?? []).join(needsAll === true ? ' and ' : ' or ')
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  const parameters: JsonObject[] = [
    ...names.map((name) => {
      return { name, in: 'path', required: true, schema: { type: 'string' } }
    }),
    ...Object.entries(query).map(([name, { type, means, isRepeatable }]) => ({
      ...{ name, in: 'query', description: means },
      schema: isRepeatable === true ? { type: 'array', items: schemaOfType(type) } : schemaOfType(type),
    })),
    ...(hasCsv === true
      ? [{ name: 'format', in: 'query', schema: { type: 'string', enum: ['json', 'csv'] } }]
      : []),
    ...(method === 'GET' ? CONDITIONS.slice(1) : CONDITIONS),
  ]
  return {
    operationId: operationId(method, path),
    summary,
    description: `Needs the scope ${joined}.`,
    parameters,
    ...(body === undefined ? {} : { requestBody: requestBody(body) }),
    responses: {
      ...Object.fromEntries(Object.entries(replies).map(([status, form]) => [status, replyOf(form, hasCsv)])),
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

/** `putAccountsNameKeysKeyName` */
function operationId(method: string, path: string): string {
  const words = path.split(/[^a-z0-9]+/i).filter((word) => word !== '')
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return method.toLowerCase() + name
}

function requestBody(body: BodyOf): JsonObject {
  const schema = ref(schemaName(body))
  const types =
    body.isPatch === true ? ['application/merge-patch+json', 'application/json'] : ['application/json']
  return {
    required: body.isOptional !== true,
    content: Object.fromEntries(types.map((type) => [type, { schema }])),
  }
}

function replyOf(form: ReplyForm | null, hasCsv?: true): JsonObject {
  if (form === null) return { description: 'Done' }
  return {
    description: form.name,
    headers: { 'x-request-id': { schema: { type: 'string' } } },
    content: {
      'application/json': { schema: ref(form.name) },
      ...(hasCsv === true ? { 'text/csv': { schema: { type: 'string' } } } : {}),
    },
  }
}

function schemaName({ name, isPatch }: BodyOf): string {
  return isPatch === true ? `${name}Patch` : `${name}Body`
}

function bodySchema({ fields, isPatch }: BodyOf): JsonObject {
  const schema = schemaOf(fields)
  if (isPatch !== true) return schema
  return without(schema, 'required')
}

/** The schemas of all replies by name. Programs take members that a later version adds. */
function replySchemas(routes: readonly AdminRoute[]): Record<string, JsonObject> {
  const forms = routes.flatMap(({ replies }) => Object.values(replies)).filter((form) => form !== null)
  const registry = z.registry<{ id: string }>()
  for (const form of [...forms, PROBLEM]) {
    for (const { name: id, schema } of [form.item ?? form, form]) registry.add(schema(), { id })
  }
  const { schemas } = z.toJSONSchema(registry, {
    ...JSON_SCHEMA,
    uri: (name) => ref(name).$ref,
    override(context) {
      JSON_SCHEMA.override(context)
      const { jsonSchema } = context
      if (jsonSchema.additionalProperties === false)
        Reflect.deleteProperty(jsonSchema, 'additionalProperties')
    },
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, without(objectOf(schema), '$schema', '$id')]),
  )
}

function ref(name: string): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` }
}

/** An error of the admin API. */
export const PROBLEM = replyForm('Problem', () => {
  const text = (description: string) => z.string().meta({ description })
  const fault = { field: z.string(), detail: z.string(), fix: z.string().optional() }
  return z.strictObject({
    type: text('`urn:sluice:error:KIND`'),
    title: z.string(),
    status: z.number().meta({ type: 'integer' }),
    detail: text('What is wrong'),
    kind: z.enum(Object.keys(PROBLEMS)),
    request_id: z.string(),
    field: text('A path such as `limits.usd_per_day`').optional(),
    fix: text('What to do').optional(),
    errors: z
      .array(replyObject(fault))
      .optional()
      .meta({ description: 'All wrong fields, when there are several' }),
    etag: z.string().nullable().optional().meta({ description: 'The current entity tag, with 412' }),
    required_scope: z.enum(SCOPES).optional(),
  })
})
