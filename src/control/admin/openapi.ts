/**
 * The OpenAPI 3.1 document of the admin API, from its table of routes, the fields of its objects and its
 * table of errors.
 */
import { SCOPES } from '../../accounts/admin-tokens.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import { schemaOf, schemaOfType, without } from '../../accounts/changes/field-types.js'
import { PROBLEMS } from '../problem-details.js'
import type { AdminRoute, BodyOf } from './route.js'
import { REPLY_SCHEMAS } from './schemas.js'

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
        ...REPLY_SCHEMAS,
        ...Object.fromEntries(bodies.map((body) => [schemaName(body), bodySchema(body)])),
        Problem: PROBLEM,
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
      ...Object.fromEntries(
        Object.entries(replies).map(([status, schema]) => [status, replyOf(schema, hasCsv)]),
      ),
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

function replyOf(schema: string | null, hasCsv?: true): JsonObject {
  if (schema === null) return { description: 'Done' }
  return {
    description: schema,
    headers: { 'x-request-id': { schema: { type: 'string' } } },
    content: {
      'application/json': { schema: ref(schema) },
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

function ref(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` }
}

const TEXT: JsonValue = { type: 'string' }

const PROBLEM: JsonObject = {
  type: 'object',
  properties: {
    type: { type: 'string', description: '`urn:sluice:error:KIND`' },
    title: TEXT,
    status: { type: 'integer' },
    detail: { type: 'string', description: 'What is wrong' },
    kind: { type: 'string', enum: Object.keys(PROBLEMS) },
    request_id: TEXT,
    field: { type: 'string', description: 'A path such as `limits.usd_per_day`' },
    fix: { type: 'string', description: 'What to do' },
    errors: {
      type: 'array',
      items: { type: 'object', properties: { field: TEXT, detail: TEXT, fix: TEXT } },
      description: 'All wrong fields, when there are several',
    },
    etag: { type: ['string', 'null'], description: 'The current entity tag, with 412' },
    required_scope: { type: 'string', enum: [...SCOPES] },
  },
  required: ['type', 'title', 'status', 'detail', 'kind', 'request_id'],
}
