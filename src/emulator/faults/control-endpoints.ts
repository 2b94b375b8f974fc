/**
 * The emulator's control endpoints: script faults, read the ledger.
 */
import type { ServerResponse } from 'node:http'
import { GatewayError } from '../../errors.js'
import { FAULTS } from './fault-table.js'
import { scriptEntryOf } from './fault-script.js'
import type { JsonObject } from '../../chat/json.js'
import type { Ledger } from '../ledger.js'
import type { Script } from './fault-script.js'

/** A request to a control endpoint. */
export interface ControlRequest {
  readonly method: string
  readonly path: string
  /** Undefined if the body is not a JSON object. */
  readonly body: JsonObject | undefined
}

/** The state that the endpoints change. */
export interface Controlled {
  readonly script: Script
  readonly ledger: Ledger
}

/** Serves `/_emulator/script`, `/_emulator/ledger` and `/_emulator/faults`. */
export function answerControl(
  { method, path, body }: ControlRequest,
  response: ServerResponse,
  { script, ledger }: Controlled,
): void {
  try {
    switch (`${method} ${path}`) {
      case 'POST /_emulator/script':
        script.add(scriptEntryOf(body))
        return send(response, 200, { scripted: script.size })
      case 'DELETE /_emulator/script':
        script.clear()
        return send(response, 200, { scripted: 0 })
      case 'GET /_emulator/ledger':
        return send(response, 200, { entries: ledger.entries })
      case 'DELETE /_emulator/ledger':
        ledger.clear()
        return send(response, 200, { entries: [] })
      case 'GET /_emulator/faults':
        return send(response, 200, { faults: FAULTS })
      default:
        return send(response, 404, {
          error: `no ${method} ${path}; there are POST and DELETE /_emulator/script, GET and DELETE /_emulator/ledger, GET /_emulator/faults`,
        })
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) {
      throw error
    }
    send(response, 400, { error: error.message })
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(`${JSON.stringify(body, undefined, 2)}\n`)
}
