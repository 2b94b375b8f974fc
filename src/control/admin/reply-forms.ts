/** The schemas of the replies of the admin API, for its OpenAPI document. */
import {
  ACCOUNT_LIMIT_FIELDS,
  KEY_FIELDS,
  MEMBER_FIELDS,
  accountFields,
} from '../../accounts/changes/fields.js'
import { isObject, type JsonObject } from '../../base/json.js'
import { SHOWN_STATES } from '../../policy/batch-records.js'
import { COLUMNS } from '../../ledger/export-columns.js'
import { DENIAL_FIELDS } from './denials.js'
import { schemaOf, type Fields } from '../../accounts/changes/field-types.js'
import { RAISE_FIELDS } from './raises.js'
import { TOKEN_FIELDS } from './tokens.js'
import { USER_FIELDS } from './users.js'

function listSchema(item: JsonObject): JsonObject {
  return {
    type: 'object',
    properties: {
      items: { type: 'array', items: item },
      next_cursor: { type: ['string', 'null'] },
    },
    required: ['items', 'next_cursor'],
  }
}

function replySchema(fields: Fields, more: JsonObject = {}): JsonObject {
  const shown = Object.entries(fields).filter(([, { writeOnly }]) => writeOnly !== true)
  const { properties } = schemaOf(Object.fromEntries(shown))
  return {
    type: 'object',
    properties: { ...(isObject(properties) ? properties : {}), ...more },
    required: shown.filter(([, { optional }]) => optional !== true).map(([name]) => name),
  }
}

const TEXT: JsonObject = { type: 'string' }
const COUNT: JsonObject = { type: 'integer', minimum: 0 }

const INVITATION: JsonObject = {
  type: 'object',
  properties: { url: TEXT, expires_at: { type: 'string', format: 'date-time' } },
}

const FIGURES: JsonObject = {
  requests: COUNT,
  failed: COUNT,
  input_tokens: COUNT,
  output_tokens: COUNT,
  cost_nano_usd: COUNT,
  cost_usd: { type: 'string', description: 'The same in dollars, with nine digits' },
  unpriced_requests: { ...COUNT, description: 'Requests of unknown price' },
  units: {
    type: 'object',
    additionalProperties: { type: 'number' },
    description: 'Units other than tokens, those that were used: `{ image: 2, audio_second: 61.5 }`',
  },
}

const AUDIT_LINE: JsonObject = {
  type: 'object',
  properties: {
    id: TEXT,
    at: { type: 'string', format: 'date-time' },
    actor: { type: 'string', description: 'An e-mail address, `command line` or `token:NAME (ID)`' },
    address: { type: ['string', 'null'] },
    request_id: { type: ['string', 'null'] },
    action: TEXT,
    account: { type: ['string', 'null'] },
    target: TEXT,
    before: { type: ['object', 'null'] },
    after: { type: ['object', 'null'] },
  },
}

const BATCH: JsonObject = {
  type: 'object',
  properties: {
    id: TEXT,
    account: { type: 'string', description: 'Its name; the id of a purged account' },
    key_id: TEXT,
    state: { type: 'string', enum: [...SHOWN_STATES] },
    endpoint: { type: 'string', description: 'That of its lines, such as /v1/chat/completions' },
    model: TEXT,
    upstream: { type: ['string', 'null'] },
    form: { type: 'string', description: 'How the upstream runs it: the name of its API, or `queue`' },
    upstream_batch_id: { type: ['string', 'null'], description: "The upstream's own id of the batch" },
    failure: { type: ['string', 'null'], description: 'Why it failed' },
    request_counts: {
      type: 'object',
      properties: {
        ...{ total: COUNT, completed: COUNT },
        failed: { ...COUNT, description: 'All that did not succeed' },
        expired: { ...COUNT, description: 'How many of the failed ones expired; only once it has ended' },
        cancelled: { ...COUNT, description: 'How many of them were cancelled; only once it has ended' },
      },
    },
    created_at: { type: 'string', format: 'date-time' },
    expires_at: { type: 'string', format: 'date-time', description: 'The end of its window' },
    ended_at: { type: ['string', 'null'], format: 'date-time' },
  },
}

const PLANNED: JsonObject = {
  type: 'object',
  properties: {
    kind: { type: 'string', enum: ['Account', 'Member', 'Key'] },
    name: TEXT,
    account: TEXT,
    changes: { type: 'object', description: 'Old and new value by field' },
    adopts: {
      type: 'object',
      description: 'The keys, members and parent of an account that is taken over',
    },
  },
}

/** By name. */
export const REPLY_SCHEMAS: Readonly<Record<string, JsonObject>> = {
  Account: replySchema(accountFields('', {})),
  AccountList: listSchema({ $ref: '#/components/schemas/Account' }),
  Limits: replySchema(ACCOUNT_LIMIT_FIELDS),
  Member: replySchema(MEMBER_FIELDS, {
    invitation: { ...INVITATION, description: 'Only in the reply that made a new user' },
  }),
  MemberList: listSchema({ $ref: '#/components/schemas/Member' }),
  Invitation: INVITATION,
  Key: replySchema(KEY_FIELDS, {
    secret: { type: 'string', description: 'The secret; only in the reply that made it' },
    previous: {
      type: 'object',
      properties: { id: TEXT, expires_at: { type: 'string', format: 'date-time' } },
      description: 'The replaced key; only in the reply of a rotation',
    },
  }),
  Raise: replySchema(RAISE_FIELDS),
  User: replySchema(USER_FIELDS),
  KeyList: listSchema({ $ref: '#/components/schemas/Key' }),
  Token: replySchema(TOKEN_FIELDS, {
    token: { type: 'string', description: 'The token; only in the reply that made it' },
  }),
  TokenList: listSchema({ $ref: '#/components/schemas/Token' }),
  Denial: replySchema(DENIAL_FIELDS),
  DenialList: listSchema({ $ref: '#/components/schemas/Denial' }),
  Run: {
    type: 'object',
    properties: {
      account: TEXT,
      run: TEXT,
      state: { type: 'string', enum: ['live', 'ended'] },
      requests: { ...COUNT, description: 'Admitted requests' },
      input_tokens: COUNT,
      output_tokens: COUNT,
      cost_nano_usd: COUNT,
      cost_usd: { type: 'string', description: 'The same in dollars, with nine digits' },
      limits: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            limit: TEXT,
            amount: { type: 'number' },
            used: { type: 'number' },
            remaining: { type: 'number' },
          },
        },
      },
      first_at: { type: ['string', 'null'], format: 'date-time' },
      last_at: { type: ['string', 'null'], format: 'date-time' },
      ended_at: { type: ['string', 'null'], format: 'date-time' },
    },
  },
  Batch: BATCH,
  BatchList: listSchema({ $ref: '#/components/schemas/Batch' }),
  Usage: {
    type: 'object',
    properties: {
      from: { type: 'string', format: 'date-time' },
      to: { type: 'string', format: 'date-time' },
      by: TEXT,
      rows: {
        type: 'array',
        items: { type: 'object', properties: { group: TEXT, ...FIGURES } },
      },
      total: { type: 'object', properties: FIGURES },
    },
  },
  Statement: {
    type: 'object',
    properties: {
      account: TEXT,
      month: { type: 'string', description: 'Such as 2026-11 (UTC)' },
      by: { type: 'string', description: 'What the lines are split by; absent: nothing' },
      lines: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            account: TEXT,
            key: { type: ['string', 'null'] },
            key_id: TEXT,
            model: TEXT,
            group: { type: 'string', description: 'The value, with `by`' },
          },
        },
      },
      total: { type: 'object' },
    },
  },
  RequestList: listSchema({
    type: 'object',
    properties: Object.fromEntries(COLUMNS.map(([name, means]) => [name, { description: means }])),
  }),
  AuditLine: AUDIT_LINE,
  AuditList: listSchema({ $ref: '#/components/schemas/AuditLine' }),
  ApplyResult: {
    type: 'object',
    properties: {
      create: { type: 'array', items: PLANNED },
      change: { type: 'array', items: PLANNED },
      remove: { type: 'array', items: PLANNED },
      unchanged: COUNT,
      applied: { type: 'boolean' },
      errors: { type: 'array', items: { type: 'object' } },
      warnings: {
        type: 'array',
        items: { type: 'string' },
        description: 'What is applied and does not work yet; absent if there is nothing.',
      },
    },
  },
  Config: { type: 'object' },
  Generations: { type: 'object' },
  Generation: { type: 'object' },
  RolledBack: { type: 'object' },
  PlanResult: { type: 'object' },
  Explanation: { type: 'object' },
}
