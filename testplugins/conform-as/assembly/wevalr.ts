// The SDK, which a plugin elsewhere has as a copy in this place.
import { abort as trap } from "../../../plugins/sdk/assemblyscript/assembly/wevalr";
export { Call, Json, Level, Plugin, Reply, Score, Status, asset, env, log, panic, parseNumber, register, statusName,
  wevalr_abi_1_0, wevalr_buf, wevalr_call } from "../../../plugins/sdk/assemblyscript/assembly/wevalr";

export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  trap(message, file, line, column);
}
