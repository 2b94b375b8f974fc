/** The approval of programs: which one requests a sign-in, and the decision of its user. */
import { addressName } from '../../../accounts/authentication/wrong-key-throttle.js'
import {
  decideDevice,
  noteWrongUserCode,
  userCodeWaitMs,
  waitingDevice,
  type WaitingDevice,
} from '../../../accounts/logins/device-codes.js'
import { accountsForPrograms } from '../../../accounts/logins/logins.js'
import { GatewayError } from '../../../errors.js'
import { notFound } from '../routing/access.js'
import { signedRoute, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { entryOf, type Services } from '../../services.js'

export function deviceRoutes(services: Services): Route[] {
  const { store, now } = services
  return [
    signedRoute('GET', '/device/{id}', {
      credential: 'session',
      reply: schema.deviceReply,
      handle: async (request) => {
        const { program, address, untilMs } = await deviceOf(services, request)
        const accounts = accountsForPrograms(request.session.accounts, request.session.members)
        const json: schema.DeviceReply = {
          ...{ program, address, expires_at: new Date(untilMs).toISOString() },
          accounts: accounts.map(({ id, name }) => ({ id, name })),
        }
        return { status: 200, json }
      },
    }),
    signedRoute('POST', '/device/{id}', {
      credential: 'session',
      body: schema.deviceBody,
      reply: schema.doneReply,
      handle: async (request) => {
        const device = await deviceOf(services, request)
        const { id, endsAtMs, user, accounts, members } = request.session
        const { approve, account: named } = request.body
        const own = accountsForPrograms(accounts, members)
        const account =
          (named ?? null) === null ? own[0] : own.find(({ id, name }) => id === named || name === named)
        if (approve && account === undefined) throw noAccount()
        const session = { id, endsAtMs }
        const by =
          approve && account !== undefined ? { userId: user.id, accountId: account.id, session } : null
        if (!(await decideDevice(store.signInTokens, device.id, by, now()))) throw notFound()
        await store.auditTrail.add(
          entryOf(services, request, {
            accountId: by === null || account === undefined ? user.id : account.id,
            action: by === null ? 'login.deny' : 'login.approve',
            target: user.email,
            detail: `${device.program} at ${device.address}`,
          }),
        )
        return { status: 200, json: {} }
      },
    }),
  ]
}

/** The program that waits with this code. Throws `not_found`, or `rate_limited` after wrong codes. */
async function deviceOf(
  { store, snapshot, now }: Services,
  { id: userCode, address }: Pick<SignedInRequest<unknown, unknown>, 'id' | 'address'>,
): Promise<WaitingDevice> {
  if (snapshot().config.login === null) throw notFound()
  const { signInTokens } = store
  const name = addressName(address)
  const waitMs = await userCodeWaitMs(signInTokens, name, now())
  if (waitMs > 0) {
    throw new GatewayError('rate_limited', 'Too many wrong codes; try again in a minute.', {
      retryAfterSeconds: Math.ceil(waitMs / 1_000),
    })
  }
  const device = await waitingDevice(signInTokens, userCode, now())
  if (device !== null) return device
  await noteWrongUserCode(signInTokens, name, now())
  throw new GatewayError('not_found', 'No program waits with this code. Compare it, or begin again.')
}

function noAccount(): GatewayError {
  const message = 'You are no owner or member of this account, so that no program can act in it for you.'
  return new GatewayError('forbidden', message, { param: 'account' })
}
