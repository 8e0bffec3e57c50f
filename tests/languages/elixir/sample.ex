defmodule Lighthouse.Lamp do
  @moduledoc """
  The lamp and how it turns.
  """

  use GenServer, restart: :transient

  import Bitwise, only: [band: 2]
  alias Lighthouse.{Keeper, Log}
  alias Lighthouse.Weather, as: Sky
  require Logger

  @behaviour Lighthouse.Light

  @period 12
  @type beam :: :on | :off
  @callback flash(beam, integer) :: :ok

  defstruct [:beam, turns: 0]

  @doc "Starts the lamp."
  @spec start_link(keyword) :: GenServer.on_start()
  def start_link(opts \\ []) do
    GenServer.start_link(__MODULE__, opts, name: __MODULE__)
  end

  @impl true
  def init(_opts), do: {:ok, %Lighthouse.Lamp{beam: :off}}

  def turn(lamp, by) when is_integer(by) do
    lamp
    |> Map.update!(:turns, &(&1 + by))
    |> note
  end

  defp note(lamp) do
    Logger.info("turned #{lamp.turns}")
    Keeper.tell(lamp, Sky.now())
  end

  defp period, do: @period

  defguard is_lit(lamp) when lamp.beam == :on

  defmacro every(seconds, do: block) do
    quote do
      Process.sleep(unquote(seconds))
      unquote(block)
    end
  end

  defdelegate tell(lamp), to: Keeper
end

defprotocol Lighthouse.Visible do
  def range(thing)
end

defimpl Lighthouse.Visible, for: Lighthouse.Lamp do
  def range(lamp), do: max(lamp.turns, 1)
end
