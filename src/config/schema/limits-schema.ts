/**
 * The keys of limits: rules, limits of plans, and settings. `check-limits.ts` checks the rules, and
 * `limits/find-limits.ts` matches requests with them.
 */
import { hostedToolName } from '../../formats/chat/hosted-tools.js'
import * as z from 'zod'
import { accountSelector, type KeyLimits } from '../../accounts/account.js'
import { LABEL_NAME, LABEL_VALUE } from '../../accounts/labels.js'
import { ACCOUNT_NAME } from '../../accounts/names.js'
import type { JsonObject } from '../../base/json.js'
import {
  boundsOf,
  LIMIT_MEMBERS,
  PLAIN_LIMITS,
  UNIT_LIMITS,
  UNIT_MEMBERS,
  unitOf,
  type LimitedUnit,
} from '../../base/limit-members.js'
import { DIMENSION_NAME } from './dimensions-schema.js'
import { section } from './section.js'
import { modelText, name, whole } from './value-types.js'

/** Nano-dollars are integers; a million dollars is a ninth of the largest safe one. */
const usd = z.number().min(0).max(1_000_000)

type PlainName = (typeof PLAIN_LIMITS)[number]['name']
type Amount = z.ZodOptional<z.ZodNumber | z.ZodInt>

/** The limits of a rule or plan. */
const amounts = {
  // Checked by the types of the lists: each has every one of its members.
  ...(Object.fromEntries(
    PLAIN_LIMITS.map((member) => {
      const { min, max } = boundsOf(member)
      const amount = member.counts === 'usd' ? usd : whole(min, max)
      return [member.name, amount.optional().describe(member.means)]
    }),
  ) as Record<PlainName, Amount>),
  [UNIT_LIMITS.name]: z
    .strictObject(
      Object.fromEntries(
        UNIT_MEMBERS.map((member) => {
          const { min, max } = boundsOf(member)
          return [member.unit, whole(min, max).optional().describe(member.means)]
        }),
      ) as Record<LimitedUnit, Amount>,
    )
    .optional()
    .describe(UNIT_LIMITS.means),
}

const text = z.string().regex(/^[!-~]{1,256}$/, {
  error: 'must be 1 to 256 printable ASCII characters without spaces',
})

const labelScope = z
  .templateLiteral(['label:', z.string()])
  .refine((scope) => LABEL_NAME.test(scope.slice('label:'.length)), {
    error: 'must be label:NAME, with a NAME of 1 to 32 characters (a-z, 0-9, _ . -)',
  })

const DIMENSION = 'dimension:'
const dimensionScope = z
  .templateLiteral([DIMENSION, z.string()])
  .refine((scope) => DIMENSION_NAME.test(scope.slice(DIMENSION.length)), {
    error: 'must be dimension:NAME, with the name of a dimension',
  })

const scopeAndSelectors = z.strictObject({
  scope: z
    .union([z.enum(['key', 'account', 'user', 'model', 'upstream']), labelScope, dimensionScope], {
      error: 'must be one of key, account, user, model, upstream, label:NAME, dimension:NAME',
    })
    .describe(
      'What is counted, each by itself: every key, every account, every user who signed in by `login` (over all tokens and accounts; requests with other credentials do not fall under the rule), every model (over all accounts), every upstream (over all accounts), or with `label:NAME` every value of this label of keys (over all accounts). Keys without the label do not fall under the rule. `dimension:NAME`: every value of this dimension, in each account by itself; requests without a value do not fall under the rule.',
    ),
  plan: name.optional().describe('Only for accounts with this plan.'),
  account: text
    .refine((account) => /^acc_.|^[^@]+@[^@]+$/.test(account) || ACCOUNT_NAME.test(account), {
      error: 'must be the name of an account, its id (acc_…) or its e-mail address',
    })
    .optional()
    .describe('Only for this account, by its name, its id or its e-mail address.'),
  key: text
    .refine((key) => key.startsWith('key_') || key === 'playground', {
      error: 'must be the id of a key (key_…), as `sluice keys list` prints it',
    })
    .optional()
    .describe('Only for this key, by its id; `playground` is the key of chats in the dashboard.'),
  value: z
    .string()
    .regex(LABEL_VALUE, {
      error: 'must be 1 to 64 printable ASCII characters without spaces and commas',
    })
    .optional()
    .describe(
      'Only with `scope: label:NAME`: only for keys with this value of the label, with a count of its own. A rule without `value` applies to them, too.',
    ),
  model: modelText
    .optional()
    .describe(
      'Only for requests for this model, including its dated ids, also with the start that a route strips.',
    ),
  prefix: modelText
    .optional()
    .describe(
      'Only for requests for a model whose id starts with this, also after the start that a route strips.',
    ),
  upstream: text.optional().describe('Only for requests that go to this upstream.'),
})

/** One rule under `limits`. It applies to the requests that match every selector. */
export const limitSchema = scopeAndSelectors.extend(amounts)

/** The limits of one subject. */
export const amountsSchema = z.strictObject(amounts)

/** `limits` of a plan. */
export const planLimitsSchema = amountsSchema
  .prefault({})
  .describe('Limits of each account with the plan, over all its keys.')

/** The keys that select the requests of a rule. */
export const SELECTORS = ['plan', 'account', 'key', 'value', 'model', 'prefix', 'upstream'] as const

/** The resolved rule; a selector is null if the rule does not have it. */
export function limitOf(rule: z.output<typeof limitSchema>) {
  const { account, ...selectors } = section(scopeAndSelectors, rule)
  return {
    ...selectors,
    /** As `accountSelector`. */
    account: account === null ? null : accountSelector(account),
    amounts: amountsOf(rule),
  }
}

/** A rate limit or budget. */
export type LimitConfig = Readonly<ReturnType<typeof limitOf>>

/** The limits that a rule or a plan sets; absent keys have no limit. */
export function amountsOf(values: z.output<typeof amountsSchema>): KeyLimits {
  const amounts: KeyLimits = {}
  for (const member of LIMIT_MEMBERS) {
    const value = 'unit' in member ? values[UNIT_LIMITS.name]?.[member.unit] : values[member.name]
    if (value !== undefined) amounts[member.field] = Math.round(value * unitOf(member))
  }
  return amounts
}

/** A limit in the file's spelling, for `/config`. */
export function shownLimit(rule: LimitConfig): JsonObject {
  const shown: JsonObject = { scope: rule.scope }
  for (const name of SELECTORS) {
    const value = rule[name]
    if (value !== null) shown[name] = value
  }
  return { ...shown, ...shownAmounts(rule.amounts) }
}

/** Amounts in the file's spelling, for `/config`. */
export function shownAmounts(amounts: KeyLimits): JsonObject {
  const shown: JsonObject = {}
  const units: JsonObject = {}
  for (const member of LIMIT_MEMBERS) {
    const value = amounts[member.field]
    if (value === undefined) continue
    if ('unit' in member) units[member.unit] = value
    else shown[member.name] = value / unitOf(member)
  }
  return Object.keys(units).length === 0 ? shown : { ...shown, [UNIT_LIMITS.name]: units }
}

/** `limiting:` */
export const limitingSchema = z
  .strictObject({
    unknown_price: z
      .enum(['assume', 'allow', 'refuse'])
      .default('assume')
      .describe(
        'How a budget counts a model without a known price. `assume`: its tokens count at `assumed_price`, and the log warns once for each model. `allow`: the request runs and counts as nothing. `refuse`: 403. The ledger entry has no cost in any case. Set a price under `upstreams.NAME.prices`, under `upstreams.NAME.models` or in the catalogue; 0 is a price.',
      ),
    assumed_price: z
      .strictObject({
        input: usd.default(10).describe('Prompt tokens.'),
        output: usd.default(50).describe('Reply tokens.'),
        call: usd
          .default(0.05)
          .describe(
            'One call of a tool that the provider runs and whose price is unknown (`calls`), in US dollars.',
          ),
      })
      .prefault({})
      .describe(
        'US dollars per million tokens that a budget counts for a model of unknown price. The default is the highest standard price in the shipped catalogue, except for models whose id ends in `-pro`.',
      ),
    unknown_length: z
      .union([z.literal('refuse'), whole(1, 10_000_000)], {
        error: 'must be refuse or a whole number from 1 to 10,000,000',
      })
      .default(8_192)
      .describe(
        'Number of reply tokens that a budget reserves if the request has no maximum and the longest reply of the model is unknown. A longer reply is charged in full when it ends. `refuse`: 400 unless the request has a maximum. A model whose price is 0 needs no maximum.',
      ),
    unknown_audio_seconds: whole(1, 1_000_000)
      .default(14_400)
      .describe(
        'Number of seconds that a budget reserves for a sound whose length its bytes do not show (FLAC, Ogg, WebM, MP4), if the catalogue has no `max_audio_seconds` for the model. The actual seconds are charged when the reply ends.',
      ),
    unseen_input: z
      .enum(['reserve', 'refuse'])
      .default('reserve')
      .describe(
        "How a budget counts a request with input that the gateway cannot see: a stored prompt, cache or container of the provider, files by id, documents by URL, videos, images by URL for models whose image tokens have no known maximum, and tools that the provider runs and whose results become input, such as a search of the web. `reserve`: the model's whole context window; the actual tokens are charged when the reply ends. `refuse`: 403. Requests without a budget are not affected.",
      ),
    unseen_input_tokens: z
      .record(
        z.string().regex(/^[A-Za-z][\w-]{0,63}$/, {
          error: 'must be the type of a tool, such as web_search',
        }),
        whole(0, 10_000_000),
      )
      .default({})
      .describe(
        'Number of prompt tokens that a budget reserves for the results of a tool that the provider runs, by its name in `allow_tools`: `{ web_search: 100000, file_search: 20000 }`, for all its calls in one request. The actual tokens are charged when the reply ends. Any other tool counts as `unseen_input` states.',
      ),
    assumed_output_tokens: whole(1, 10_000_000)
      .default(4_096)
      .describe(
        'Number of reply tokens that `tokens_per_minute` reserves if the request has no maximum; the actual number is counted when the reply ends. Budgets reserve the longest reply of the model.',
      ),
    child_plans: z
      .array(name)
      .max(100)
      .optional()
      .describe(
        'The plans that admin tokens with an account may give to accounts below it. Default: the plan of their account, and plans that cost and allow no more.',
      ),
    budget_status: z
      .union([z.literal(402), z.literal(429)])
      .default(402)
      .describe(
        'HTTP status of a request that a budget refuses (`budget_exceeded`). Agents end at a 402 and repeat a 429 for minutes; 429 is for apps that rely on the status of version 0.1.',
      ),
    away: z
      .strictObject({
        processes: whole(1, 100_000)
          .optional()
          .describe(
            'Number of processes of all gateways of the store: each may use this share of the limits. Default: `workers` of this gateway.',
          ),
        budget_share: z
          .number()
          .min(0)
          .max(1)
          .default(0.01)
          .describe('Maximum share of a budget that may be spent during one outage, 0 to 1.'),
        budget_usd: usd
          .default(1)
          .describe('The same in US dollars; the smaller of the two applies. 0: nothing.'),
      })
      .prefault({})
      .describe('Limits while the store is unavailable.'),
  })
  .prefault({})
  .describe('Settings of limits and budgets.')

/** Settings of limits. `workers` is the number of this gateway's processes. */
export function limitingOf(limiting: z.output<typeof limitingSchema>, workers: number) {
  const { away } = limiting
  return {
    ...section(limitingSchema.unwrap(), limiting),
    /** Reply tokens that a budget reserves if no maximum is known; null: the request is refused. */
    unknownLength: limiting.unknown_length === 'refuse' ? null : limiting.unknown_length,
    /** By the name of the tool. */
    unseenInputTokens: Object.fromEntries(
      Object.entries(limiting.unseen_input_tokens).map(([name, tokens]) => [hostedToolName(name), tokens]),
    ),
    away: {
      /** Processes that share the limits. */
      processes: away.processes ?? workers,
      budgetShare: away.budget_share,
      budgetNanoUsd: Math.round(away.budget_usd * 1e9),
    },
  }
}
